import { useState } from 'preact/hooks'
import { admin } from '../../admin.ts'
import { act } from '../../components/act.ts'
import { Drawer, Page, Panel } from '../../components/layout.tsx'
import { ReasonForm } from '../../components/reason.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { toast } from '../../components/toast.tsx'
import { State } from '../../components/values.tsx'
import type { Rail } from '../../generated/admin.ts'
import { reload as reloadKey, useLoaded } from '../../query.ts'
import { HeldBy } from './holds.tsx'

/** The connected banks. Holding one stops what has not been sent; answers of the bank are read all the same. */
export default function Rails() {
  const { value, error, reload } = useLoaded('operator-rails', () => admin.listRails())
  const [holding, setHolding] = useState<string>()
  const columns: Column<Rail>[] = [
    { title: 'Rail', cell: ({ name }) => <b>{name}</b> },
    {
      title: 'State',
      cell: ({ hold }) => <State state={hold === null ? 'open' : 'held'} tone={hold === null ? 'good' : 'wait'} />,
    },
    { title: 'Currency', cell: ({ currency }) => currency ?? <span class="quiet">–</span>, isMinor: true },
    { title: 'Payments go', cell: wayOf, isMinor: true },
    {
      title: 'Held',
      cell: ({ hold }) => (hold === null ? <span class="quiet">–</span> : <HeldBy hold={hold} />),
      isMinor: true,
    },
    {
      title: 'Change',
      isTitleHidden: true,
      cell: ({ name, hold }) => (
        <button
          type="button"
          class="text-button"
          onClick={() =>
            hold === null
              ? setHolding(name)
              : void act(() => admin.releaseRail(name), `${name} is released`, 'operator-rails')
          }
        >
          {hold === null ? 'Hold' : 'Release'}
        </button>
      ),
      isFigure: true,
    },
  ]
  return (
    <Page title="Rails">
      <Panel isFlush>
        <Table
          label="Rails"
          columns={columns}
          list={{ rows: value?.rails, error, reload }}
          keyOf={({ name }) => name}
          empty={
            <Empty title="No bank is connected">
              A sandbox pays through the simulated bank. A live installation pays nothing until a bank is connected in
              its settings.
            </Empty>
          }
        />
      </Panel>
      <Drawer title={`Hold ${holding ?? ''}`} isOpen={holding !== undefined} onClose={() => setHolding(undefined)}>
        <p>Nothing is sent through it until it is released. What has been sent cannot be stopped.</p>
        <ReasonForm
          submit="Hold"
          onSubmit={async given => {
            await admin.holdRail(holding ?? '', given)
            toast(`${holding} is held`)
            reloadKey('operator-rails')
            setHolding(undefined)
          }}
        />
      </Drawer>
    </Page>
  )
}

function wayOf({ isConfigured, kind, isByHand }: Rail): string {
  if (!isConfigured) return 'nowhere: it is no longer in the settings'
  if (kind === 'api') return 'by requests to the bank'
  return isByHand ? 'in files, carried by hand' : 'in files'
}
