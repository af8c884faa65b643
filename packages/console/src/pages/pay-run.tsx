import type { PayRunDetails } from '@midmonth/sdk'
import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import { actUnlessUndone } from '../act.ts'
import { api } from '../api.ts'
import { authorName } from '../components/author.tsx'
import { BadButton } from '../components/button.tsx'
import { Figure, KeyValuesPanel, Page, PendingPage } from '../components/layout.tsx'
import { MetadataPanel } from '../components/metadata.tsx'
import { useSummaries } from '../components/pay-run-summaries.ts'
import { Id, State, Time } from '../components/values.tsx'
import { formatNumber } from '../format.ts'
import { useLoaded } from '../query.ts'
import { may } from '../session.ts'

export default function PayRunPage() {
  const { id } = useRoute().params as { id: PayRunDetails['id'] }
  const { value, error, reload: retry } = useLoaded(`pay-run ${id}`, () => api.payRuns.get(id))
  const [shown] = useSummaries(value && [value]) ?? []
  const summary = shown?.summary
  if (value === undefined) return <PendingPage title="Pay run" error={error} onRetry={retry} />
  return (
    <Page title="Pay run" actions={<Revert payRun={value} />}>
      <div class="row row-wrap above">
        <State state={value.status} />
      </div>
      <div class="figures">
        {summary && <Figure title="Members">{formatNumber(summary.memberCount)}</Figure>}
        <Figure title="Lines">{formatNumber(value.lineCount)}</Figure>
        {value.totals.map(total => (
          <Figure key={total.currency} title={`Total in ${total.currency}`} money={total} />
        ))}
      </div>
      <div class="narrow stack">
        <KeyValuesPanel
          entries={[
            ['Pay run', <Id key="id" id={id} isLink={false} />],
            ['Pay cycle', <Id key="cycle" id={value.payCycleId} />],
            ['File', summary?.fileName ?? '–'],
            ['Sent by', summary?.author ? authorName(summary.author) : '–'],
            ['Sent', <Time key="created" at={value.createdAt} />],
            ['Available from', <Time key="scheduled" at={value.availableAt ?? value.scheduledFor} />],
            ['Reverted', <Time key="reverted" at={value.revertedAt} />],
          ]}
        />
        <MetadataPanel metadata={value.metadata} />
      </div>
    </Page>
  )
}

/** Reverts a pay run after a delay in which the reader can undo this. */
export function Revert({ payRun: { id, status } }: { payRun: Pick<PayRunDetails, 'id' | 'status'> }) {
  const [isReverting, setIsReverting] = useState(false)
  if (status === 'Reverted' || !may('payroll')) return null
  const revert = () => {
    setIsReverting(true)
    actUnlessUndone('Pay run reverted. A reversal is booked.', () => api.payRuns.revert(id), {
      changes: ['pay-run', 'member'],
      onEnd: () => setIsReverting(false),
    })
  }
  return (
    <BadButton disabled={isReverting} act={revert}>
      Revert
    </BadButton>
  )
}
