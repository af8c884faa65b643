import { Page } from '../components/layout.tsx'
import { Empty } from '../components/states.tsx'

export function NotFound() {
  return (
    <Page title="Not found">
      <Empty title="There is no such page">
        The address is incomplete, or what it names belongs to another partner.
      </Empty>
    </Page>
  )
}
