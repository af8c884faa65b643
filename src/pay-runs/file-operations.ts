import type { Db } from '../database/database.ts'
import { consoleOperation, named } from '../http/operation.ts'
import { toWire } from '../kernel/money.ts'
import { payroll } from '../users/roles.ts'
import { type CheckedFile, checkFile } from './file-check.ts'
import * as payRuns from './pay-runs.ts'
import type { Line } from './rules.ts'

// Enough for the largest file with some columns that are not read.
const fileBytesMax = 32 * 1024 * 1024
// Less than a week: some partners pay the same amounts every week, which is not a mistake.
const sentDays = 6
// Keeps the cost of writing a response on the main thread to a few milliseconds at a time.
const linesAtOnce = 2_000

/**
 * Reads a file of pay and returns the bodies and idempotency keys for `uploadPayRun`. Changes nothing, so that a person can
 * review the sums first.
 */
const checkPayRunFile = consoleOperation({
  route: 'POST /console/v1/pay-run-files',
  scope: 'pay:write',
  roles: payroll,
  fileBody: { name: 'PayRunFile', description: 'Pay by member.', example: '' },
  fileBytesMax,
  async run({ partner, now, file, signal, context: { db } }, { download }) {
    const checked = await file.lend(fd =>
      checkFile(db, { partnerId: partner.id, file: { fd, kind: file.tableKind }, signal }),
    )
    const parts = await partsOf(db, { partnerId: partner.id, checked, now })
    const headers = { 'content-type': 'application/json; charset=utf-8' }
    return download({ headers, parts: textOf(checked, parts) })
  },
})

export const payRunFileOperations = named({ checkPayRunFile })

type PartOnWire = {
  /** The key for sending the part now, or for sending it again if it was sent before. */
  idempotencyKey: string
  /** A recent pay run with the same lines that was not reverted; null if there is none. */
  sent: { payRunId: string; at: Date } | null
  lines: Line[]
}

/**
 * Finds out which parts were sent before. Keys derive from the lines and the latest pay run with these lines. A repeated request
 * therefore counts once, and the same pay can still be sent again on purpose, after a revert or a week later.
 */
async function partsOf(
  db: Db,
  { partnerId, checked, now }: { partnerId: string; checked: CheckedFile; now: Date },
): Promise<PartOnWire[]> {
  const since = new Date(now.getTime() - sentDays * 86_400_000)
  const known = new Set<string>()
  const parts: PartOnWire[] = []
  for (const [index, { lines, digest }] of checked.parts.entries()) {
    const found = await payRuns.findIdentical(db, { partnerId, lines, digest, now })
    // A pay run matches only one part, even if two parts are identical.
    const identical = found.filter(({ id }) => !known.has(id))
    const standing = identical.find(({ status, createdAt }) => status !== 'Reverted' && createdAt > since)
    if (standing !== undefined) known.add(standing.id)
    parts.push({
      idempotencyKey: `pay-run-file.${digest.slice(0, 40)}.${index}.${identical[0]?.id ?? 'first'}`,
      sent: standing === undefined ? null : { payRunId: standing.id, at: standing.createdAt },
      lines,
    })
  }
  return parts
}

async function* textOf({ lineCount, memberCount, totals }: CheckedFile, parts: PartOnWire[]): AsyncGenerator<string> {
  const summary = JSON.stringify({ lineCount, memberCount, totals: totals.map(toWire) })
  yield `${summary.slice(0, -1)},"parts":[`
  for (const [index, { lines: all, ...part }] of parts.entries()) {
    yield `${index === 0 ? '' : ','}${JSON.stringify(part).slice(0, -1)},"payDetails":[`
    for (let at = 0; at < all.length; at += linesAtOnce) {
      const some = all.slice(at, at + linesAtOnce)
      const text = JSON.stringify(some.map(({ memberId, ...money }) => ({ memberId, money: toWire(money) })))
      yield `${at === 0 ? '' : ','}${text.slice(1, -1)}`
    }
    yield ']}'
  }
  yield ']}'
}
