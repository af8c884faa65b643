import type { Webhook, WebhookWithSecret } from '@midmonth/sdk'
import { useState } from 'preact/hooks'
import { api } from '../api.ts'
import { Field, Form } from '../components/form.tsx'
import { Icon } from '../components/icon.tsx'
import { Drawer, Page, Panel } from '../components/layout.tsx'
import { Code, Empty } from '../components/states.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Id, State, Time } from '../components/values.tsx'
import { hrefOfId } from '../places.ts'
import { reload as reloadKey, useList } from '../query.ts'

const columns: Column<Webhook>[] = [
  { title: 'Address', cell: ({ url }) => <b class="address">{url}</b> },
  { title: 'State', cell: ({ status }) => <State state={status} /> },
  { title: 'Events', cell: ({ types }) => <code>{types.join(', ')}</code>, isMinor: true },
  { title: 'Webhook', cell: ({ id }) => <Id id={id} />, isMinor: true },
  { title: 'Created', cell: ({ createdAt }) => <Time at={createdAt} />, isMinor: true },
]

export default function Webhooks() {
  const [isCreating, setIsCreating] = useState(false)
  const [created, setCreated] = useState<WebhookWithSecret>()
  const listed = useList(
    'webhooks',
    () => api.webhooks.list({ take: 50 }),
    page => page.webhooks,
  )
  const close = () => {
    setIsCreating(false)
    setCreated(undefined)
  }
  return (
    <Page
      title="Webhooks"
      actions={
        <button type="button" class="button button-main" onClick={() => setIsCreating(true)}>
          <Icon name="plus" />
          Add a webhook
        </button>
      }
    >
      <Panel isFlush>
        <Table
          label="Webhooks"
          columns={columns}
          list={listed}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => hrefOfId(id)}
          empty={
            <Empty title="No webhooks yet" curl={firstRequest()}>
              A webhook delivers signed events to your server within seconds.
            </Empty>
          }
        />
      </Panel>
      <Drawer title="Add a webhook" isOpen={isCreating} onClose={close}>
        {created === undefined ? (
          <Form
            submit="Add"
            onSubmit={async ({ url = '', types = '', description = '' }) => {
              const list = types.split(/[\s,]+/).filter(Boolean) as Webhook['types']
              setCreated(
                await api.webhooks.create({
                  url,
                  ...(list.length > 0 ? { types: list } : {}),
                  ...(description === '' ? {} : { description }),
                }),
              )
              reloadKey('webhooks')
            }}
          >
            {problemOf => (
              <>
                <Field label="Address" name="url" type="url" problem={problemOf('url')} isRequired />
                <Field
                  label="Events"
                  name="types"
                  value="*"
                  problem={problemOf('types')}
                  note="Types or groups, separated by spaces: withdrawal.* member.activated"
                />
                <Field label="Description" name="description" problem={problemOf('description')} />
              </>
            )}
          </Form>
        ) : (
          <>
            <p>Copy this secret now. It verifies the signatures and is not shown again.</p>
            <Code text={created.secret} label="Copy the secret" />
            <div>
              <button type="button" class="button button-main" onClick={close}>
                Stored
              </button>
            </div>
          </>
        )}
      </Drawer>
    </Page>
  )
}

function firstRequest(): string {
  return `curl ${location.origin}/v1/webhooks \\
  -H "x-api-key: $MIDMONTH_API_KEY" \\
  -H 'content-type: application/json' \\
  -d '{"url":"https://example.com/midmonth"}'`
}
