import { ExportButton } from '../../components/export.tsx'
import { FilterBar, OneFilter, TextFilter, useFilters } from '../../components/filters.tsx'
import { Icon } from '../../components/icon.tsx'
import { Page } from '../../components/layout.tsx'
import { type Column, TablePanel } from '../../components/table.tsx'
import { Id, State, Time } from '../../components/values.tsx'
import { type PartnerState, type PartnerSummary, partnerStates } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { hrefOfRecord } from '../../places.ts'
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
  const [state] = filters.all('state') as PartnerState[]
  const listed = useList(`operator-partners?${filters.text}`, take =>
    operators.listPartners({ take, state, search: filters.given('search') }),
  )
  const isEmpty = filters.text === '' && listed.rows?.length === 0
  return (
    <Page
      title="Partners"
      actions={
        <>
          <ExportButton name="partners" columns={['id', 'name', 'state', 'createdAt']} rows={listed.all} />
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
        <TablePanel label="Partners" columns={columns} list={listed} hrefOf={hrefOfRecord} empty="No partners match" />
      </div>
    </Page>
  )
}
