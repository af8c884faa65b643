import { adminList, type PartnerState, type PartnerSummary } from '../../admin.ts'
import { ExportButton } from '../../components/export.tsx'
import { ChoiceFilter, FilterBar, TextFilter, useFilters } from '../../components/filters.tsx'
import { Page, Panel } from '../../components/layout.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Id, State, Time } from '../../components/values.tsx'
import { hrefOfId } from '../../places.ts'
import { useList } from '../../query.ts'

type Partners = { partners: PartnerSummary[]; total: number; take: number }

const states = ['open', 'paused', 'suspended'] as const

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
  const query = new URLSearchParams({ take: '50' })
  const [state] = filters.all('state')
  if (state !== undefined) query.set('state', state)
  if (filters.get('search') !== '') query.set('search', filters.get('search'))
  const list = () => adminList<Partners, PartnerSummary>('partners', query, page => page.partners)
  const listed = useList(`operator-partners?${filters.text}`, list, page => page.partners)
  return (
    <Page
      title="Partners"
      actions={
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
      }
    >
      <FilterBar>
        <ChoiceFilter
          label="State"
          values={states}
          chosen={filters.all('state')}
          onChange={values => filters.set('state', ...values.slice(-1))}
        />
        <TextFilter
          label="Name or id"
          value={filters.get('search')}
          isSearch
          onChange={value => filters.set('search', value)}
        />
      </FilterBar>
      <Panel isFlush>
        <Table
          label="Partners"
          columns={columns}
          list={listed}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => hrefOfId(id)}
          empty={<Empty title="No partner matches" curl="npx openwage partner create 'Acme Couriers'" />}
        />
      </Panel>
    </Page>
  )
}
