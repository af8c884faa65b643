import { useEffect, useState } from 'preact/hooks'
import { actUnlessUndone } from '../act.ts'
import type { ApiKey, PartnerId, Scope } from '../generated/operator.ts'
import { operators } from '../operators.ts'
import { reload, useList } from '../query.ts'
import { BadButton, MainButton, TextButton } from './button.tsx'
import { Choice, Form, Options } from './form.tsx'
import { DrawerButton, Page } from './layout.tsx'
import { Secret } from './states.tsx'
import { type Column, TablePanel } from './table.tsx'
import { CopyButton, State, Time } from './values.tsx'

const scopes: Record<Scope, string> = {
  'members:read': 'Reads members and member imports',
  'members:write': 'Invites, changes and offboards members',
  'pay:read': 'Reads pay, withdrawals, events and the request log',
  'pay:write': 'Sends pay runs and withdrawals, sets up webhooks',
}
const scopeNames = Object.keys(scopes) as Scope[]

const validDays = { 30: '30 days', 90: '90 days', 365: 'a year', '': 'until it is revoked' }
const overlapSeconds = { 3600: 'an hour', 86400: 'a day', 604800: '7 days', '': 'until I revoke it' }

// A partner has at most 100 valid keys.
const keysPerPage = 100

type ApiKeysProps = {
  partnerId: PartnerId
  wanted?: string
  /** A page rather than a panel on another page. */
  isPage?: boolean
}

/**
 * Lists, creates, rotates and revokes the API keys of a partner. Each secret is shown once.
 * @param props.wanted the id of the key to highlight
 */
export function ApiKeys({ partnerId, wanted, isPage = false }: ApiKeysProps) {
  const list = useList(`keys ${partnerId}`, take => operators.listApiKeys(partnerId, { take }), { take: keysPerPage })
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
      cell: key => (key.scopes.length === scopeNames.length ? 'All' : <code>{key.scopes.join(' ')}</code>),
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
            <DrawerButton look={TextButton} text="Rotate" title="Rotate the key">
              {close => <Rotate partnerId={partnerId} old={key} onStored={close} />}
            </DrawerButton>
            <BadButton act={() => revoke(partnerId, key)}>Revoke</BadButton>
          </span>
        ),
    },
  ]
  const create = (
    <DrawerButton look={MainButton} icon="plus" text="New key" title="New API key" pageAction="create-key">
      {close => <Create partnerId={partnerId} onStored={close} />}
    </DrawerButton>
  )
  const table = {
    columns,
    list,
    empty: 'No keys yet',
    hint: 'Your server needs a key to call the API. The secret is shown once.',
  }
  if (!isPage) return <TablePanel id="keys" title="API keys" aside={create} {...table} />
  return (
    <Page title="API keys" actions={create}>
      <TablePanel label="API keys" {...table} />
    </Page>
  )
}

type NewKeyProps = { partnerId: PartnerId; onStored: () => void }
type NewKey = { secret: string | null }

function Create({ partnerId, onStored }: NewKeyProps) {
  const [created, setCreated] = useState<NewKey>()
  if (created !== undefined) return <Store {...created} onStored={onStored} />
  return (
    <Form
      submit="Create the key"
      onSubmit={async ({ days = '', ...chosen }) => {
        const expiry = days === '' ? {} : { expiresInDays: Number(days) }
        setCreated(await operators.createApiKey(partnerId, { scopes: Object.keys(chosen) as Scope[], ...expiry }))
      }}
    >
      <Options
        label="Scopes"
        name="scopes"
        meanings={scopes}
        titleOf={scope => scope}
        isMany
        checked={scopeNames}
        missing="Choose at least one"
      />
      <Choice label="Valid for" name="days" value="365" choices={validDays} />
    </Form>
  )
}

function Rotate({ partnerId, old, onStored }: NewKeyProps & { old: ApiKey }) {
  const [created, setCreated] = useState<NewKey>()
  if (created !== undefined) return <Store {...created} onStored={onStored} />
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
          setCreated(await operators.rotateApiKey(partnerId, old.id, body))
        }}
      >
        <Choice label="The old key works for" name="overlap" value="86400" choices={overlapSeconds} />
      </Form>
    </>
  )
}

function Store({ secret, onStored }: NewKey & { onStored: () => void }) {
  // The list behind the drawer.
  useEffect(() => reload('keys', 'operator-partner'), [])
  if (secret === null)
    return (
      <p class="notice">
        An earlier attempt created the key, but the response with the secret was lost. Revoke the newest key and create
        another.
      </p>
    )
  return (
    <>
      <Secret text={secret} label="Copy the key">
        Copy the secret now. It is not shown again.
      </Secret>
      <p class="quiet">Send it in the header x-api-key. Keep it on your server, never in a web page or an app.</p>
      <div>
        <MainButton act={onStored}>Stored</MainButton>
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
    { changes: ['keys', 'operator-partner'] },
  )
}
