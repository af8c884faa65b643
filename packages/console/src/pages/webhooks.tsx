import type { Webhook, WebhookWithSecret } from '@midmonth/sdk'
import { useState } from 'preact/hooks'
import { api } from '../api.ts'
import { MainButton } from '../components/button.tsx'
import { Field, Form } from '../components/form.tsx'
import { DrawerButton, Page } from '../components/layout.tsx'
import { exampleRequest, Secret } from '../components/states.tsx'
import { type Column, TablePanel } from '../components/table.tsx'
import { Id, State, Time } from '../components/values.tsx'
import { hrefOfRecord } from '../places.ts'
import { reload, useList } from '../query.ts'

const columns: Column<Webhook>[] = [
  { title: 'Address', cell: ({ url }) => <b class="address">{url}</b> },
  { title: 'State', cell: ({ status }) => <State state={status} /> },
  { title: 'Events', cell: ({ types }) => <code>{types.join(', ')}</code>, isMinor: true },
  { title: 'Webhook', cell: ({ id }) => <Id id={id} />, isMinor: true },
  { title: 'Created', cell: ({ createdAt }) => <Time at={createdAt} />, isMinor: true },
]

export default function Webhooks() {
  const listed = useList('webhooks', take => api.webhooks.list({ take }))
  return (
    <Page
      title="Webhooks"
      actions={
        <DrawerButton look={MainButton} icon="plus" text="Add a webhook">
          {close => <Create onStored={close} />}
        </DrawerButton>
      }
    >
      <TablePanel
        label="Webhooks"
        columns={columns}
        list={listed}
        hrefOf={hrefOfRecord}
        empty="No webhooks yet"
        hint="A webhook delivers signed events to your server within seconds."
        curl={exampleRequest('/v1/webhooks', { url: 'https://example.com/midmonth' })}
      />
    </Page>
  )
}

function Create({ onStored }: { onStored: () => void }) {
  const [created, setCreated] = useState<WebhookWithSecret>()
  if (created !== undefined)
    return (
      <>
        <Secret text={created.secret} label="Copy the secret">
          Copy this secret now. It verifies the signatures and is not shown again.
        </Secret>
        <div>
          <MainButton act={onStored}>Stored</MainButton>
        </div>
      </>
    )
  return (
    <Form
      submit="Add"
      onSubmit={async ({ url = '', types = '', description = '' }) => {
        const list = types.split(/[\s,]+/).filter(Boolean) as Webhook['types']
        const given = { ...(list.length > 0 && { types: list }), ...(description !== '' && { description }) }
        setCreated(await api.webhooks.create({ url, ...given }))
        reload('webhooks')
      }}
    >
      <Field label="Address" name="url" type="url" isRequired />
      <Field
        label="Events"
        name="types"
        value="*"
        note="Types or groups, separated by spaces: withdrawal.* member.activated"
      />
      <Field label="Description" name="description" />
    </Form>
  )
}
