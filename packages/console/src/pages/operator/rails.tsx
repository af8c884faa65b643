import { useState } from 'preact/hooks'
import { admin, type Hold, type Rail } from '../../admin.ts'
import { act } from '../../components/act.ts'
import { Panel } from '../../components/layout.tsx'
import { Person } from '../../components/person.tsx'
import { ReasonDrawer } from '../../components/reason.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { toast } from '../../components/toast.tsx'
import { State, Time } from '../../components/values.tsx'
import { reload, useLoaded } from '../../query.ts'

/** The connected banks. A sandbox without any pays through the simulated bank. */
export function useRails(): Rail[] {
  return useLoaded('operator-rails', () => admin<{ rails: Rail[] }>('GET', 'rails')).value?.rails ?? []
}

/** Since when, by whom and why something is held. */
export function HeldBy({ hold: { since, by, reason } }: { hold: Hold }) {
  return (
    <span>
      by <Person who={by} />
      {since !== null && (
        <>
          {' '}
          since <Time at={since} />
        </>
      )}
      {reason !== null && `: ${reason}`}
    </span>
  )
}

const ways = { files: 'Files', api: 'API' }

function wayOf({ isConfigured, kind, isByHand }: Rail): string {
  if (!isConfigured || kind === null) return 'No longer configured'
  return isByHand ? 'Files, by hand' : ways[kind]
}

/** The rails, each with what holds it. */
export function Rails({ rails }: { rails: Rail[] }) {
  const [holding, setHolding] = useState<string>()
  const post = (name: string, verb: string, body: object) =>
    admin('POST', `rails/${encodeURIComponent(name)}/${verb}`, body)
  const release = (name: string) =>
    void act(() => post(name, 'release', {}), 'Released: what waits is sent', 'operator-')
  const columns: Column<Rail>[] = [
    { title: 'Rail', cell: ({ name, currency }) => (currency === null ? name : `${name} (${currency})`) },
    { title: 'How it pays', cell: wayOf, isMinor: true },
    {
      title: 'State',
      cell: ({ hold }) =>
        hold === null ? (
          <State state="sends" tone="good" />
        ) : (
          <>
            <State state="held" /> <HeldBy hold={hold} />
          </>
        ),
    },
    {
      title: 'Action',
      cell: ({ name, hold }) => (
        <button
          type="button"
          class="button"
          aria-label={`${hold === null ? 'Hold' : 'Release'} the rail ${name}`}
          onClick={() => (hold === null ? setHolding(name) : release(name))}
        >
          {hold === null ? 'Hold' : 'Release'}
        </button>
      ),
      isFigure: true,
    },
  ]
  return (
    <Panel title="Rails" isFlush>
      <Table label="Rails" columns={columns} list={{ rows: rails }} keyOf={({ name }) => name} />
      <ReasonDrawer
        title={`Hold the rail ${holding ?? ''}`}
        submit="Hold"
        note="For operators and the audit log; nothing personal"
        isOpen={holding !== undefined}
        onClose={() => setHolding(undefined)}
        onSubmit={async reason => {
          await post(holding ?? '', 'hold', { reason })
          toast('Held: nothing is sent through it until it is released')
          reload('operator-')
        }}
      >
        No file is delivered and no request is made until you release it. Answers of the bank are read all the same.
        What has been sent cannot be stopped here; call the bank.
      </ReasonDrawer>
    </Panel>
  )
}
