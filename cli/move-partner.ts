import { movePartner, type PartnerMove, planMove } from '../src/database/move-partner.ts'
import { ask, isInteractive } from './ask.ts'
import { PrintingCommand } from './command.ts'
import { countOf, printResult } from './print.ts'
import { writeErrorLine } from './terminal.ts'
import { withOwner } from './with-database.ts'

export const movePartnerCommand = new PrintingCommand('move')
  .description(
    'Move a partner to another node of a distributed PostgreSQL (Citus), into a separate shard, while it is served. Says what it will do, then asks for confirmation. See docs/operations/scale-out.md.',
  )
  .argument('<partner>', 'the partner’s id, par_…')
  .requiredOption('--to <node>', 'host of the node, or its host and port')
  .option('--yes', 'skip the confirmation')
  .examples('partner move par_… --to db-2.internal', 'partner move par_… --to db-2.internal:5432 --yes')
  .action(async (partnerId: string, { to, yes, json }: { to: string; yes?: true; json?: true }) => {
    await withOwner(async ({ db, pool }) => {
      const client = await pool.connect()
      const { isNeeded, ...move } = await planMove(client, db, { partnerId, to }).finally(() => client.release())
      if (!isNeeded) {
        const text = () => `${move.name} is on ${move.to} already, in a separate shard.`
        return printResult({ json }, { value: { ...move, isMoved: false }, text })
      }
      // Standard output holds nothing but the result.
      writeErrorLine(inWords(move))
      if (!yes) await confirm()
      const startedAt = performance.now()
      const { writes, longestPauseMs } = await movePartner(db, pool, { partnerId, to })
      const seconds = Math.ceil((performance.now() - startedAt) / 1_000)
      printResult(
        { json },
        {
          value: { ...move, isMoved: true, seconds, writes, longestPauseMs },
          text: () =>
            `${move.name} is on ${move.to}, after ${seconds} s. The longest pause of its writes was ${longestPauseMs} ms.`,
        },
      )
    })
  })

async function confirm(): Promise<void> {
  if (!isInteractive())
    throw new Error('Nothing was moved: confirmation needs a terminal; check the move, then add --yes')
  if (!(await ask('Rows are copied while the partner is served.'))) throw new Error('Nothing was moved')
}

function inWords(move: Omit<PartnerMove, 'isNeeded'>): string {
  const { partnerId, name, from, to, rows, bytes, neighbours, isShared, leftovers } = move
  const others = countOf(neighbours, 'other partner')
  const megabytes = `${(bytes + 999_999n) / 1_000_000n} MB`
  return [
    `${name} (${partnerId}) is on ${from}, with ${rows} rows.`,
    isShared
      ? `Its shard of ${megabytes} has ${others}. It gets a separate shard on ${to}; the rest of the shard is copied there and back.`
      : `Its own shard of ${megabytes} is copied to ${to}.`,
    ...(leftovers.length === 0
      ? []
      : [
          `Earlier moves have left ${leftovers.map(({ kind, count }) => countOf(count, kind)).join(', ')}, which are removed first.`,
        ]),
    `At the end, writes of ${isShared && neighbours > 0 ? `these ${neighbours + 1} partners` : 'the partner'} wait for a moment.`,
  ].join('\n')
}
