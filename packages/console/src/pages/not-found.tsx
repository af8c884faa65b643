import { Page, Panel } from '../components/layout.tsx'
import { Empty } from '../components/states.tsx'

export function NotFound() {
  return (
    <Page title="Not found">
      <Panel isFlush>
        <Empty title="This page does not exist">
          The address is incomplete, or the record belongs to another partner.
        </Empty>
      </Panel>
    </Page>
  )
}
