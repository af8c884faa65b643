import { systemClock } from '../src/clock.ts'
import type { Db, Tx } from '../src/database/database.ts'
import { reasonOf } from '../src/kernel/text.ts'
import type { DetachedMonth } from '../src/ledger/detached.ts'
import type { Check, Seals } from '../src/verification/verify.ts'
import { operator, recordChange } from './actor.ts'
import { day, whole } from './arguments.ts'
import { bodyOf } from './client/files.ts'
import { printStream } from './client/output.ts'
import { examples } from './help.ts'
import { addServerOptions, OperatorCommand, withOperators } from './operator-client.ts'
import { countOf, print, printResult } from './print.ts'
import { setExitCode, writeErrorLine, writeLine } from './terminal.ts'
import { withDatabase, withOwner } from './with-database.ts'

const operations = () => import('../src/operators/journal-operations.ts')

export const ledgerCommand = new OperatorCommand('ledger', operations).description(
  'Check the ledger, and export its journal.',
)

ledgerCommand
  .command('verify')
  .description(
    'Recompute every balance and report the first mismatch of each rule. Transfers that are sealed, because their pay cycle has closed, are not read again, but their sums are. Does not change the books. Records the result, unless the database role may only read. Exits with code 3 on a mismatch.',
  )
  .option('--all', 'recompute the sealed transfers as well')
  .examples('ledger verify', 'ledger verify --all')
  .action(async ({ json, all }) => {
    const [{ readSeals, totals, verify }, { inSnapshot }] = await Promise.all([
      import('../src/verification/verify.ts'),
      import('../src/verification/walks.ts'),
    ])
    // Not by an operation: reading the whole ledger takes longer than a response may, and must also work without a worker.
    const { checks, accounts, seals } = await withDatabase(async db => {
      const startedAt = systemClock()
      const found = await verify(db, { isWhole: all === true })
      await recordResult(db, { startedAt, checks: found })
      return {
        checks: found,
        ...(await inSnapshot(db, async tx => ({ accounts: await totals(tx), seals: await readSeals(tx) }))),
      }
    })
    const broken = checks.filter(check => check.disagreement !== null)
    if (json) {
      const inMoney = accounts.map(({ debits, credits, currency, ...account }) => ({
        ...account,
        // A sum over all members may be more than any single amount can be.
        debits: { amount: debits, currency },
        credits: { amount: credits, currency },
      }))
      printResult(
        { json },
        {
          value: { agree: broken.length === 0, isWhole: all === true, seals, checks, accounts: inMoney },
          text: () => '',
        },
      )
    } else {
      print(
        accounts.map(({ partnerId, account, currency, debits, credits }) => ({
          partner: partnerId,
          account,
          currency,
          debits: String(debits),
          credits: String(credits),
        })),
        {},
      )
      writeLine()
      writeLine(describe(seals, all === true))
      for (const [year, months] of Map.groupBy(seals.detached, ({ month }) => month.slice(0, 4)))
        writeLine(describeDetached(year, { months, isWhole: all === true }))
      for (const { rule, disagreement } of checks) {
        writeLine(`${disagreement === null ? 'ok    ' : 'BROKEN'}  ${rule}`)
        if (disagreement === null) continue
        const { partnerId, subject, expected, found } = disagreement
        writeLine(`        ${partnerId} ${subject}: expected ${expected}; found ${found}`)
      }
    }
    if (broken.length > 0) setExitCode(3)
  })

/** Says what was read, and what only by its sums. */
function describe({ transfers, cycles, latestAt }: Seals, isWhole: boolean): string {
  if (cycles === 0) return 'No transfers are sealed; all were read'
  const sealed = `${transfers} transfers of ${cycles} closed pay cycles are sealed, the latest at ${latestAt?.toISOString()}`
  return `${sealed}; ${isWhole ? 'they were recomputed too' : 'only their sums were read (--all recomputes them)'}`
}

/** Names what was not read, and whether its sums were. */
function describeDetached(year: string, { months, isWhole }: { months: DetachedMonth[]; isWhole: boolean }): string {
  const transfers = months.reduce((sum, month) => sum + month.transfers, 0n)
  return `${year} is detached (${countOf(months.length, 'month')}, ${transfers} transfers): ${isWhole ? 'only its sums were' : 'it was not'} read (ledger attach ${year} brings it back)`
}

const yearArgument = ['<year>', 'for example 2026, by UTC', whole({ min: 2000, max: 9999 })] as const

ledgerCommand
  .command('detach')
  .description(
    'Detach the transfers of a past year whose books are sealed, month by month, as tables of the schema "detached" that can be dumped and moved. Continues where it was interrupted. See docs/operations/detached-years.md.',
  )
  .argument(...yearArgument)
  .option('--yes', 'do it; otherwise only say what would be detached')
  .examples('ledger detach 2026', 'ledger detach 2026 --yes')
  .action(async (year: number, { yes = false, ...options }) => {
    const { detachMonth, planDetaching } = await import('../src/verification/detaching.ts')
    await withOwner(async ({ db }) => {
      const now = systemClock()
      const months = await planDetaching(db, { year, now })
      for (const month of yes ? months : []) {
        const record = (tx: Tx) =>
          recordChange(tx, {
            ...{ partnerId: null, now },
            change: { action: 'ledger.detach', resourceId: String(year), details: { month } },
          })
        await detachMonth(db, { month, now, record })
        writeErrorLine(`${month.slice(0, 7)} is detached`)
      }
      printResult(options, {
        value: { done: yes, months },
        text: () =>
          yes
            ? `The transfers of ${year} are in the schema "detached". midmonth ledger attach ${year} brings them back.`
            : `${countOf(months.length, 'month')} of ${year} can be detached: ${months.map(month => month.slice(0, 7)).join(', ')}.\nNothing was changed. With --yes, midmonth ledger detach does this. Run ledger verify --all before.`,
      })
    })
  })

ledgerCommand
  .command('attach')
  .description('Attach the transfers of a detached year again, at once.')
  .argument(...yearArgument)
  .examples('ledger attach 2026')
  .action(async (year: number, options) => {
    const { attach } = await import('../src/verification/detaching.ts')
    await withOwner(async ({ db }) => {
      const change = { action: 'ledger.attach', resourceId: String(year), details: {} } as const
      const months = await attach(db, {
        year,
        record: tx => recordChange(tx, { partnerId: null, change, now: systemClock() }),
      })
      printResult(options, {
        value: { months },
        text: () => `The transfers of ${year} are attached. Check them now: midmonth ledger verify --all`,
      })
    })
  })

const journalCommand = ledgerCommand
  .command('journal')
  .description(
    'Print the journal as CSV, for an accounting program: debits and credits by day and account, at most 366 days. See docs/operations/finance.md.',
  )
  .requiredOption('--from <day>', 'the first day, by each partner’s time zone', day)
  .requiredOption('--to <day>', 'the last day', day)
  .option('--partner <id>', 'only this partner; by default all partners')
  .addHelpText('after', examples('ledger journal --from 2026-03-01 --to 2026-03-31 > journal.csv'))
  .action(async ({ from, to, partner: partnerId, ...options }) => {
    await withOperators(options, operations, async api =>
      printStream(bodyOf(await api.exportJournal({ from, to, partnerId }))),
    )
  })

addServerOptions(journalCommand)

/** Best effort: a standby, or a role that only reads, can also be verified. */
async function recordResult(db: Db, { startedAt, checks }: { startedAt: Date; checks: Check[] }): Promise<void> {
  const [{ record }, { recordEnded }] = await Promise.all([
    import('../src/audit-log/audit-log.ts'),
    import('../src/verification/verifications.ts'),
  ])
  const actor = operator()
  const now = systemClock()
  try {
    await db.transaction().execute(async tx => {
      const id = await recordEnded(tx, { requestedBy: actor.name, startedAt, endedAt: now, checks })
      const change = { action: 'ledger.verify', resourceId: id, details: {} } as const
      await record(tx, { partnerId: null, actor, change, now })
    })
  } catch (error) {
    writeErrorLine(`The result is not recorded: ${reasonOf(error)}`)
  }
}
