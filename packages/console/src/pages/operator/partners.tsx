import { ExportButton } from '../../components/export.tsx'
import { FilterBar, OneFilter, TextFilter, useFilters } from '../../components/filters.tsx'
import { Icon } from '../../components/icon.tsx'
import { Page, Panel } from '../../components/layout.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Id, State, Time } from '../../components/values.tsx'
import { type PartnerState, type PartnerSummary, partnerStates } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { hrefOfId } from '../../places.ts'
import { useList } from '../../query.ts'
import { isSandbox } from '../../session.ts'
import { FirstSteps } from './first-steps.tsx'

const columns: Column<PartnerSummary>[] = [
  { title: 'Name', cell: ({ name }) => <b>{name}</b> },
  { title: 'State', cell: ({ state }) => <PartnerStateOf state={state} /> },
  { title: 'Partner', cell: ({ id }) => <Id id={id} />, isMinor: true },
  { title: 'Created', cell: ({ createdAt }) => <Time at={createdAt} />, isMinor: true },
]

export function PartnerStateOf({ state }: { state: PartnerState }) {
  return <State state={state} tone={state === 'open' ? 'good' : state === 'paused' ? 'wait' : 'bad'} />
}

export default function Partners() {
  const filters = useFilters()
  const search = filters.get('search') || undefined
  const [state] = filters.all('state') as PartnerState[]
  const list = () => operators.listPartners({ take: 50, state, search })
  const listed = useList(`operator-partners?${filters.text}`, list, page => page.partners)
  const isEmpty = filters.text === '' && listed.rows?.length === 0
  return (
    <Page
      title="Partners"
      actions={
        <>
          <ExportButton
            name="partners"
            columns={[
              ['id', (row: PartnerSummary) => row.id],
              ['name', row => row.name],
              ['state', row => row.state],
              ['created_at', row => row.createdAt],
            ]}
            rows={list}
          />
          <a class="button button-main" href="/console/operator/new-partner">
            <Icon name="plus" />
            New partner
          </a>
        </>
      }
    >
      {isEmpty && <FirstSteps isLive={!isSandbox.value} />}
      <div hidden={isEmpty}>
        <FilterBar>
          <OneFilter label="State" name="state" values={partnerStates} shown={state} />
          <TextFilter label="Name or id" name="search" isSearch />
        </FilterBar>
        <Panel isFlush>
          <Table
            label="Partners"
            columns={columns}
            list={listed}
            keyOf={({ id }) => id}
            hrefOf={({ id }) => hrefOfId(id)}
            empty={<Empty title="No partners match" />}
          />
        </Panel>
      </div>
    </Page>
  )
}
