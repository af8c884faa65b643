import { useState } from 'preact/hooks'
import { Page, Panel } from '../../components/layout.tsx'
import { ReasonDrawer } from '../../components/reason.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { State } from '../../components/values.tsx'
import type { Rail } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { reload as reloadKey, useLoaded } from '../../query.ts'
import { toast } from '../../toasts.ts'
import { HeldBy } from './holds.tsx'

/** Lists the connected banks. Holding a rail stops unsent payments; the bank's answers are still read. */
export default function Rails() {
  const { value, error, reload } = useLoaded('operator-rails', () => operators.listRails())
  const [asking, setAsking] = useState<Rail>()
  const isHeld = asking !== undefined && asking.hold !== null
  const columns: Column<Rail>[] = [
    { title: 'Rail', cell: ({ name }) => <b>{name}</b> },
    {
      title: 'State',
      cell: ({ hold }) => <State state={hold === null ? 'open' : 'held'} tone={hold === null ? 'good' : 'wait'} />,
    },
    { title: 'Currency', cell: ({ currency }) => currency ?? <span class="quiet">–</span>, isMinor: true },
    { title: 'Payments go', cell: transportOf, isMinor: true },
    {
      title: 'Held',
      cell: ({ hold }) => (hold === null ? <span class="quiet">–</span> : <HeldBy hold={hold} />),
      isMinor: true,
    },
    {
      title: 'Change',
      isTitleHidden: true,
      cell: rail => (
        <button type="button" class="text-button" onClick={() => setAsking(rail)}>
          {rail.hold === null ? 'Hold' : 'Release'}
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
              A sandbox pays through the simulated bank. A live installation makes no payouts until a bank is connected
              in its settings.
            </Empty>
          }
        />
      </Panel>
      <ReasonDrawer
        title={`${isHeld ? 'Release' : 'Hold'} ${asking?.name ?? ''}`}
        submit={isHeld ? 'Release' : 'Hold'}
        isOpen={asking !== undefined}
        onClose={() => setAsking(undefined)}
        onSubmit={async given => {
          const name = asking?.name ?? ''
          await (isHeld ? operators.releaseRail(name, given) : operators.holdRail(name, given))
          toast(`${name} ${isHeld ? 'released' : 'held'}`)
          reloadKey('operator-rails')
        }}
      >
        {isHeld
          ? 'Approved payments can be sent through this rail again.'
          : 'No payments are sent through this rail until it is released. Payments that have been sent cannot be stopped.'}
      </ReasonDrawer>
    </Page>
  )
}

function transportOf({ isConfigured, kind, isByHand }: Rail): string {
  if (!isConfigured) return 'nowhere: the rail is no longer in the settings'
  if (kind === 'api') return 'by requests to the bank'
  return isByHand ? 'in files, transferred manually' : 'in files'
}
