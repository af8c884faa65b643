import { Page, Panel } from '../components/layout.tsx'
import { Empty } from '../components/states.tsx'

export function NotFound() {
  return (
    <Page title="Not found">
      <Panel isFlush>
        <Empty title="There is no such page">
          The address is incomplete, or what it names belongs to another partner.
        </Empty>
      </Panel>
    </Page>
  )
}
