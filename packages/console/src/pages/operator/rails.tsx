import { TextButton } from '../../components/button.tsx'
import { Page } from '../../components/layout.tsx'
import { ReasonButton } from '../../components/reason.tsx'
import { type Column, TablePanel } from '../../components/table.tsx'
import { State } from '../../components/values.tsx'
import type { Rail } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { useLoaded } from '../../query.ts'
import { HeldBy } from './holds.tsx'

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
  { title: 'Change', isTitleHidden: true, cell: rail => <HoldOrRelease rail={rail} />, isFigure: true },
]

/** Lists the connected banks. Holding a rail stops unsent payments; the bank's answers are still read. */
export default function Rails() {
  const { value, error, reload } = useLoaded('operator-rails', () => operators.listRails())
  return (
    <Page title="Rails">
      <TablePanel
        label="Rails"
        columns={columns}
        list={{ rows: value?.rails, error, reload }}
        keyOf={({ name }) => name}
        empty="No bank is connected"
        hint="A sandbox pays through the simulated bank. A live installation makes no payouts until a bank is connected in its settings."
      />
    </Page>
  )
}

function HoldOrRelease({ rail: { name, hold } }: { rail: Rail }) {
  const verb = hold === null ? 'Hold' : 'Release'
  return (
    <ReasonButton
      look={TextButton}
      text={verb}
      title={`${verb} ${name}`}
      change={given => (hold === null ? operators.holdRail(name, given) : operators.releaseRail(name, given))}
      done={`${name} ${hold === null ? 'held' : 'released'}`}
      reloads="operator-rails"
    >
      {hold === null
        ? 'No payments are sent through this rail until it is released. Payments that have been sent cannot be stopped.'
        : 'Approved payments can be sent through this rail again.'}
    </ReasonButton>
  )
}

function transportOf({ isConfigured, kind, isByHand }: Rail): string {
  if (!isConfigured) return 'nowhere: the rail is no longer in the settings'
  if (kind === 'api') return 'by requests to the bank'
  return isByHand ? 'in files, transferred manually' : 'in files'
}
