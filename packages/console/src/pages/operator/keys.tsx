import { useState } from 'preact/hooks'
import { admin } from '../../admin.ts'
import { act } from '../../components/act.ts'
import { Drawer, Panel } from '../../components/layout.tsx'
import { Code, Empty, messageOf } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { doUnlessUndone, toast } from '../../components/toast.tsx'
import { Id, State, Time } from '../../components/values.tsx'
import type { ApiKey, PartnerId } from '../../generated/admin.ts'
import { reload, useLoaded } from '../../query.ts'

/** The API keys of a partner: made, rotated and revoked here; each secret is shown once. */
export function Keys({ partnerId }: { partnerId: PartnerId }) {
  const [secret, setSecret] = useState<string | null>()
  const { value, error } = useLoaded(`operator-keys ${partnerId}`, () => admin.listApiKeys(partnerId))
  const show = async (make: () => PromiseLike<{ secret: string | null }>) => {
    const made = await act(make, 'The key is made', 'operator-keys', 'operator-partner')
    // The second answer to a double click is a replay, which has no secret.
    if (made !== undefined) setSecret(shown => shown ?? made.secret)
  }
  const columns: Column<ApiKey>[] = [
    { title: 'Key', cell: ({ hint }) => <code>{hint}…</code> },
    { title: 'State', cell: ({ state }) => <State state={state} tone={state === 'valid' ? 'good' : 'calm'} /> },
    { title: 'Id', cell: ({ id }) => <Id id={id} isLink={false} />, isMinor: true },
    { title: 'Scopes', cell: ({ scopes }) => scopes.join(', '), isMinor: true },
    { title: 'Last used', cell: ({ lastUsedAt }) => <Time at={lastUsedAt} />, isMinor: true },
    {
      title: 'Change',
      cell: ({ id, state }) =>
        state === 'valid' && (
          <>
            <button
              type="button"
              class="text-button"
              onClick={() => void show(() => admin.rotateApiKey(partnerId, id))}
            >
              Rotate
            </button>
            <button
              type="button"
              class="text-button"
              onClick={() =>
                doUnlessUndone(
                  'Revoked: requests with the key are refused.',
                  () =>
                    void admin
                      .revokeApiKey(partnerId, id)
                      .then(() => reload('operator-keys'))
                      .catch(problem => toast(messageOf(problem), { kind: 'bad' })),
                  () => undefined,
                )
              }
            >
              Revoke
            </button>
          </>
        ),
    },
  ]
  return (
    <Panel
      id="keys"
      isFlush
      title="API keys"
      aside={
        <button type="button" class="button" onClick={() => void show(() => admin.createApiKey(partnerId, {}))}>
          New key
        </button>
      }
    >
      <Table
        label="API keys"
        columns={columns}
        list={{ rows: value?.keys, error }}
        keyOf={({ id }) => id}
        empty={<Empty title="No keys yet" />}
      />
      <Drawer title="The new key" isOpen={secret !== undefined} onClose={() => setSecret(undefined)}>
        {secret === null ? (
          <p class="notice">
            An earlier attempt made the key, and its secret was lost with the answer. Revoke the newest key, and make
            another one.
          </p>
        ) : (
          <>
            <p>Store it now: it is not shown again.</p>
            <Code text={secret ?? ''} label="Copy the key" />
          </>
        )}
      </Drawer>
    </Panel>
  )
}
