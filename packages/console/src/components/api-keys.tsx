import { useState } from 'preact/hooks'
import { actUnlessUndone } from '../act.ts'
import type { ApiKey, PartnerId, Scope } from '../generated/operator.ts'
import { operators } from '../operators.ts'
import { reload, useList } from '../query.ts'
import { Choice, Form } from './form.tsx'
import { Icon } from './icon.tsx'
import { Drawer, Page, Panel } from './layout.tsx'
import { usePageAction } from './page-action.ts'
import { Code, Empty } from './states.tsx'
import { type Column, Table } from './table.tsx'
import { CopyButton, State, Time } from './values.tsx'

const scopes: [string, string][] = [
  ['members:read', 'Reads members and member imports'],
  ['members:write', 'Invites, changes and offboards members'],
  ['pay:read', 'Reads pay, withdrawals, events and the request log'],
  ['pay:write', 'Sends pay runs and withdrawals, sets up webhooks'],
]

const validityPeriods: [string, string][] = [
  ['30', '30 days'],
  ['90', '90 days'],
  ['365', 'a year'],
  ['', 'until it is revoked'],
]

const overlaps: [string, string][] = [
  ['3600', 'an hour'],
  ['86400', 'a day'],
  ['604800', '7 days'],
  ['', 'until I revoke it'],
]

// A partner has at most 100 valid keys.
const keysPerPage = 100

type OpenDrawer = { kind: 'create' } | { kind: 'rotate'; key: ApiKey } | { kind: 'store'; secret: string | null }

const titles = { create: 'New API key', rotate: 'Rotate the key', store: 'The new key' }

/**
 * Lists, creates, rotates and revokes the API keys of a partner. Each secret is shown once.
 * @param props.wanted the id of the key to highlight
 */
export function ApiKeys({
  partnerId,
  wanted,
  isPage = false,
}: {
  partnerId: PartnerId
  wanted?: string
  /** A page rather than a panel on another page. */
  isPage?: boolean
}) {
  const [doing, setDoing] = useState<OpenDrawer>()
  usePageAction('create-key', () => setDoing({ kind: 'create' }))
  const list = useList(
    `keys ${partnerId}`,
    () => operators.listApiKeys(partnerId, { take: keysPerPage }),
    page => page.keys,
  )
  const store = ({ secret }: { secret: string | null }) => {
    reload('keys', 'operator-partner')
    setDoing({ kind: 'store', secret })
  }
  const close = () => setDoing(undefined)
  const columns: Column<ApiKey>[] = [
    {
      title: 'Key',
      cell: ({ id, hint }) => (
        <span class={`id${id === wanted ? ' wanted' : ''}`}>
          <code title={id}>{hint}</code>
          <CopyButton text={id} label={`Copy ${id}`} />
        </span>
      ),
    },
    { title: 'State', cell: ({ state }) => <State state={state} tone={state === 'valid' ? 'good' : 'calm'} /> },
    {
      title: 'Scopes',
      cell: key => (key.scopes.length === scopes.length ? 'All' : <code>{key.scopes.join(' ')}</code>),
      isMinor: true,
    },
    {
      title: 'Last used',
      cell: ({ lastUsedAt }) => (lastUsedAt === null ? <span class="quiet">Never</span> : <Time at={lastUsedAt} />),
      isMinor: true,
    },
    {
      title: 'Ends',
      cell: ({ expiresAt, revokedAt }) =>
        revokedAt === null && expiresAt === null ? <span class="quiet">–</span> : <Time at={revokedAt ?? expiresAt} />,
      isMinor: true,
    },
    { title: 'Created', cell: ({ createdAt }) => <Time at={createdAt} />, isMinor: true },
    {
      title: 'Change',
      isTitleHidden: true,
      cell: key =>
        key.state === 'valid' && (
          <span class="row-actions">
            <button type="button" class="text-button" onClick={() => setDoing({ kind: 'rotate', key })}>
              Rotate
            </button>
            <button type="button" class="button button-bad" onClick={() => revoke(partnerId, key)}>
              Revoke
            </button>
          </span>
        ),
    },
  ]
  const create = (
    <button type="button" class="button button-main" onClick={() => setDoing({ kind: 'create' })}>
      <Icon name="plus" />
      New key
    </button>
  )
  const content = (
    <>
      <Table
        label="API keys"
        columns={columns}
        list={list}
        keyOf={({ id }) => id}
        empty={<Empty title="No keys yet">Your server needs a key to call the API. The secret is shown once.</Empty>}
      />
      <Drawer title={doing === undefined ? '' : titles[doing.kind]} isOpen={doing !== undefined} onClose={close}>
        {doing?.kind === 'create' && <Create partnerId={partnerId} onCreated={store} />}
        {doing?.kind === 'rotate' && <Rotate partnerId={partnerId} old={doing.key} onCreated={store} />}
        {doing?.kind === 'store' && <Store secret={doing.secret} onStored={close} />}
      </Drawer>
    </>
  )
  if (!isPage)
    return (
      <Panel id="keys" isFlush title="API keys" aside={create}>
        {content}
      </Panel>
    )
  return (
    <Page title="API keys" actions={create}>
      <Panel isFlush>{content}</Panel>
    </Page>
  )
}

type NewKeyProps = { partnerId: PartnerId; onCreated: (created: { secret: string | null }) => void }

function Create({ partnerId, onCreated }: NewKeyProps) {
  return (
    <Form
      submit="Create the key"
      onSubmit={async ({ days = '', ...chosen }) => {
        const expiry = days === '' ? {} : { expiresInDays: Number(days) }
        onCreated(await operators.createApiKey(partnerId, { scopes: Object.keys(chosen) as Scope[], ...expiry }))
      }}
    >
      {problemOf => (
        <>
          <fieldset class="role-fields" aria-describedby="problem-scopes">
            <legend>Scopes</legend>
            {scopes.map(([scope, meaning]) => (
              <label key={scope}>
                <input type="checkbox" name={scope} defaultChecked />
                <span>
                  <b>{scope}</b> <span class="quiet">{meaning}</span>
                </span>
              </label>
            ))}
            <span class="field-problem" id="problem-scopes">
              {problemOf('scopes') === undefined ? '' : 'Choose at least one'}
            </span>
          </fieldset>
          <Choice label="Valid for" name="days" value="365" choices={validityPeriods} />
        </>
      )}
    </Form>
  )
}

function Rotate({ partnerId, old, onCreated }: NewKeyProps & { old: ApiKey }) {
  return (
    <>
      <p>
        A second key with the same scopes and lifetime replaces <code>{old.hint}</code>. Both work until the old key
        expires.
      </p>
      <Form
        submit="Create the second key"
        onSubmit={async ({ overlap = '' }) => {
          const body = overlap === '' ? {} : { overlapSeconds: Number(overlap) }
          onCreated(await operators.rotateApiKey(partnerId, old.id, body))
        }}
      >
        {() => <Choice label="The old key works for" name="overlap" value="86400" choices={overlaps} />}
      </Form>
    </>
  )
}

function Store({ secret, onStored }: { secret: string | null; onStored: () => void }) {
  if (secret === null)
    return (
      <p class="notice">
        An earlier attempt created the key, but the response with the secret was lost. Revoke the newest key and create
        another.
      </p>
    )
  return (
    <>
      <p>Copy the secret now. It is not shown again.</p>
      <Code text={secret} label="Copy the key" />
      <p class="quiet">Send it in the header x-api-key. Keep it on your server, never in a web page or an app.</p>
      <div>
        <button type="button" class="button button-main" onClick={onStored}>
          Stored
        </button>
      </div>
    </>
  )
}

function revoke(partnerId: PartnerId, { id, hint, lastUsedAt }: ApiKey): void {
  const sinceUseDays = lastUsedAt === null ? undefined : (Date.now() - Date.parse(lastUsedAt)) / 86_400_000
  const use = sinceUseDays !== undefined && sinceUseDays < 1 ? ' This key was used in the last 24 hours.' : ''
  actUnlessUndone(
    `${hint} is revoked; requests that use it are rejected.${use}`,
    () => operators.revokeApiKey(partnerId, id),
    {
      changes: ['keys', 'operator-partner'],
    },
  )
}
