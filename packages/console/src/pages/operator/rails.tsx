import { admin } from '../../admin.ts'
import { act } from '../../components/act.ts'
import { Page, Panel } from '../../components/layout.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { State, Time } from '../../components/values.tsx'
import type { Rail } from '../../generated/admin.ts'
import { useLoaded } from '../../query.ts'

const columns: Column<Rail>[] = [
  { title: 'Rail', cell: ({ name }) => <b>{name}</b> },
  {
    title: 'State',
    cell: ({ hold }) => <State state={hold === null ? 'open' : 'held'} tone={hold ? 'wait' : 'good'} />,
  },
  { title: 'Currency', cell: ({ currency }) => currency, isMinor: true },
  {
    title: 'Payments go',
    cell: ({ kind, isByHand }) =>
      kind === 'api' ? 'by requests to the bank' : isByHand ? 'in files, carried by hand' : 'in files',
    isMinor: true,
  },
  {
    title: 'Held',
    cell: ({ hold }) =>
      hold === null ? (
        <span class="quiet">–</span>
      ) : (
        <>
          <Time at={hold.since} /> by {hold.by}
        </>
      ),
    isMinor: true,
  },
  {
    title: 'Change',
    cell: ({ name, hold }) => (
      <button
        type="button"
        class="text-button"
        onClick={() =>
          void act(
            () => (hold === null ? admin.holdRail(name) : admin.releaseRail(name)),
            hold === null ? `${name} is held: nothing is sent through it` : `${name} is released`,
            'operator-rails',
          )
        }
      >
        {hold === null ? 'Hold' : 'Release'}
      </button>
    ),
    isFigure: true,
  },
]

/** The connected banks. Holding one stops what has not been sent; answers of the bank are read all the same. */
export default function Rails() {
  const { value, error, reload } = useLoaded('operator-rails', () => admin.listRails())
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
    </Page>
  )
}
