import type { Webhook, WebhookDelivery, WebhookDeliveryState } from '@midmonth/sdk'
import { useState } from 'preact/hooks'
import { useLocation, useRoute } from 'preact-iso'
import { act, actUnlessUndone } from '../act.ts'
import { api } from '../api.ts'
import { BadButton, Button, TextButton } from '../components/button.tsx'
import { FilterBar, ManyFilter, useFilters } from '../components/filters.tsx'
import { Drawer, DrawerButton, KeyValues, KeyValuesPanel, Page, Pending, PendingPage } from '../components/layout.tsx'
import { MetadataPanel } from '../components/metadata.tsx'
import { Code, Secret } from '../components/states.tsx'
import { type Column, TablePanel } from '../components/table.tsx'
import { HttpStatus, Id, State, Time } from '../components/values.tsx'
import { formatNumber, inWords, plural } from '../format.ts'
import { at } from '../places.ts'
import { reload, useList, useLoaded } from '../query.ts'

type WebhookId = Webhook['id']

const states = ['pending', 'delivered', 'failed', 'skipped'] as const

export default function WebhookPage() {
  const { id } = useRoute().params as { id: WebhookId }
  const { value, error, reload: retry } = useLoaded(`webhook ${id}`, () => api.webhooks.get(id))
  if (value === undefined) return <PendingPage title="Webhook" error={error} onRetry={retry} />
  return (
    <Page title={new URL(value.url).host} actions={<Actions webhook={value} />}>
      <div class="row row-wrap above">
        <State state={value.status} />
        <span class="record-to address">{value.url}</span>
      </div>
      <div class="columns">
        <Deliveries webhook={value} />
        <div class="stack">
          <KeyValuesPanel
            entries={[
              ['Webhook', <Id key="id" id={id} isLink={false} />],
              ['Events', <code key="types">{value.types.join(', ')}</code>],
              ['Description', value.description ?? '–'],
              ['Created', <Time key="created" at={value.createdAt} />],
              ['Failing since', <Time key="failing" at={value.failingSince} />],
              ['Disabled', value.disabledReason === null ? '–' : inWords(value.disabledReason)],
            ]}
          />
          <MetadataPanel metadata={value.metadata} />
        </div>
      </div>
    </Page>
  )
}

function Actions({ webhook: { id, enabled } }: { webhook: Webhook }) {
  const { route } = useLocation()
  const [secret, setSecret] = useState<string>()
  return (
    <>
      <Button
        act={async () => {
          await act(() => api.webhooks.test(id, { type: 'withdrawal.paid' }), 'Sample event queued', 'webhook')
          reloadSoon()
        }}
      >
        Send a sample
      </Button>
      <Button
        act={async () => {
          await act(
            // The retention period of events.
            () => api.webhooks.replay(id, { failedSince: new Date(Date.now() - 29 * 86_400_000).toISOString() }),
            ({ count }) => (count === 0 ? 'No failed deliveries' : `${plural(count, 'event')} replayed`),
            'webhook',
          )
          reloadSoon()
        }}
      >
        Replay failed deliveries
      </Button>
      <Button
        act={() =>
          act(
            () => api.webhooks.rotateSecret(id, {}),
            ({ secret: shown }) => {
              setSecret(shown)
              return 'Deliveries are also signed with the previous secret for a day'
            },
          )
        }
      >
        Rotate the secret
      </Button>
      <Button
        act={() =>
          act(() => api.webhooks.update(id, { enabled: !enabled }), enabled ? 'Disabled' : 'Enabled', 'webhook')
        }
      >
        {enabled ? 'Disable' : 'Enable'}
      </Button>
      <BadButton
        act={() => {
          const page = at(`webhooks/${id}`)
          actUnlessUndone('Webhook deleted.', () => api.webhooks.delete(id), {
            changes: ['webhooks'],
            onUndo: () => route(page),
          })
          route(at('webhooks'))
        }}
      >
        Delete
      </BadButton>
      <Drawer title="The new secret" isOpen={secret !== undefined} onClose={() => setSecret(undefined)}>
        <Secret text={secret ?? ''} label="Copy the secret">
          Copy the secret now. It is not shown again.
        </Secret>
      </Drawer>
    </>
  )
}

function Deliveries({ webhook: { id } }: { webhook: Webhook }) {
  const filters = useFilters()
  const chosen = filters.all('state') as WebhookDeliveryState[]
  const listed = useList(`webhook-deliveries ${id} ${filters.text}`, take =>
    api.webhooks.listDeliveries(id, { states: chosen, take }),
  )
  const columns: Column<WebhookDelivery>[] = [
    { title: 'Event', cell: ({ type }) => <code>{type}</code> },
    { title: 'State', cell: ({ state }) => <State state={state} /> },
    {
      title: 'Last response',
      cell: ({ attemptCount, lastStatus }) =>
        attemptCount === 0 ? <span class="quiet">–</span> : <HttpStatus status={lastStatus} />,
    },
    { title: 'When', cell: ({ createdAt }) => <Time at={createdAt} />, isMinor: true },
    { title: 'Attempts', cell: ({ attemptCount }) => formatNumber(attemptCount), isFigure: true, isMinor: true },
    { title: 'Next attempt', cell: ({ nextAttemptAt }) => <Time at={nextAttemptAt} />, isMinor: true },
    {
      title: 'Act',
      isTitleHidden: true,
      cell: delivery => (
        <div class="row-actions">
          {!delivery.isTest && delivery.state !== 'delivered' && (
            <TextButton act={() => sendNow(id, delivery)}>Send now</TextButton>
          )}
          <DrawerButton look={TextButton} text="Attempts" title={delivery.type}>
            {() => <Attempts webhookId={id} delivery={delivery} />}
          </DrawerButton>
        </div>
      ),
    },
  ]
  return (
    <div class="stack stack-s">
      <FilterBar>
        <ManyFilter label="State" name="state" values={states} />
      </FilterBar>
      <TablePanel
        title="Deliveries"
        columns={columns}
        list={listed}
        empty="No deliveries yet"
        hint="Send a sample to see one."
      />
    </div>
  )
}

/** Attempts take a moment, so the list is reloaded several times. */
const reloadAfterMs = [1_000, 3_000, 8_000]

function reloadSoon(): void {
  for (const afterMs of reloadAfterMs) setTimeout(() => reload('webhook'), afterMs)
}

async function sendNow(webhookId: WebhookId, { id }: WebhookDelivery): Promise<void> {
  await act(() => api.webhooks.replay(webhookId, { eventId: id }), 'Sent again', 'webhook')
  reloadSoon()
}

function Attempts({ webhookId, delivery }: { webhookId: WebhookId; delivery: WebhookDelivery }) {
  const { value, error } = useLoaded(`webhook-attempts ${webhookId} ${delivery.id}`, () =>
    api.webhooks.getDelivery(webhookId, delivery.id),
  )
  if (value === undefined) return <Pending error={error} lines={3} />
  return (
    <>
      <KeyValues
        entries={[
          ['Event', <Id key="id" id={value.id} isLink={false} />],
          ['Next attempt', <Time key="next" at={value.nextAttemptAt} />],
        ]}
      />
      {!value.isTest && (
        <div>
          <Button act={() => sendNow(webhookId, delivery)}>Send now</Button>
        </div>
      )}
      <ol class="stack">
        {value.attempts.toReversed().map(attempt => (
          <li key={attempt.number} class="stack stack-s">
            <p class="facts row row-wrap">
              <HttpStatus status={attempt.status} />
              <Time at={attempt.at} />
              <span class="quiet">
                {formatNumber(attempt.durationMs)} ms
                {attempt.error !== null && `, ${inWords(attempt.error).toLowerCase()}`}
              </span>
            </p>
            {attempt.response !== null && attempt.response !== '' && (
              <Code text={attempt.response.slice(0, 2_000)} label="Copy the response" />
            )}
          </li>
        ))}
      </ol>
    </>
  )
}
