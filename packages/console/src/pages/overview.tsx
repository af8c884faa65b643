import { Page } from '../components/layout.tsx'

export default function Overview() {
  return <Page title="Overview">{null}</Page>
}
