import type { Money, PayRun } from '@midmonth/sdk'
import { send } from '../api.ts'
import { useLoaded } from '../query.ts'

/** Figures of a pay run that only the console's API returns. */
type PayRunSummary = {
  id: string
  createdAt: string
  lineCount: number
  memberCount: number
  totals: Money[]
  fileName: string | null
  author: { kind: string; name: string | null } | null
}

export type ShownPayRun = PayRun & { summary: PayRunSummary | undefined }

/** Adds summaries to the pay runs of a list. Best effort: without them, the list is still shown. */
export function useSummaries(rows: PayRun[] | undefined): ShownPayRun[] | undefined {
  const ids = rows?.map(({ id }) => id) ?? []
  const { value } = useLoaded(ids.length === 0 ? null : `pay-run-summaries ${ids.join()}`, async () => {
    const found = new Map<string, PayRunSummary>()
    for (let start = 0; start < ids.length; start += idsAtOnce) {
      const query = ids.slice(start, start + idsAtOnce).map(id => `ids=${id}`)
      const { payRuns } = await send<{ payRuns: PayRunSummary[] }>('GET', `/console/v1/pay-runs?${query.join('&')}`)
      for (const summary of payRuns) found.set(summary.id, summary)
    }
    return found
  })
  return rows?.map(row => ({ ...row, summary: value?.get(row.id) }))
}

// The API's limit per request.
const idsAtOnce = 100
