import { SettingsProblem } from '../src/config.ts'
import { distribute } from '../src/database/distribute.ts'
import { countConnections } from '../src/database/migrations.ts'
import { planDistribution } from '../src/database/placing.ts'
import type { Database } from '../src/open-database.ts'
import { PrintingCommand } from './command.ts'
import { printResult } from './print.ts'
import { writeErrorLine } from './terminal.ts'
import { whole } from './whole.ts'
import { withOwner } from './with-database.ts'

type Options = { yes?: boolean; shards: number; json?: boolean }

export const distributeCommand = new PrintingCommand('distribute')
  .description(
    'Spread the tables over the nodes of a distributed PostgreSQL (Citus). See docs/operations/scale-out.md.',
  )
  .option('--yes', 'do it; otherwise only say what is left to do')
  .option(
    '--shards <count>',
    'into how many parts the partners are divided, at least one per core of all nodes',
    whole({ min: 1, max: 1_024 }),
    32,
  )
  .examples('distribute', 'distribute --yes --shards 64')
  .action(async ({ yes = false, shards, ...options }: Options) => {
    await withOwner(async database => {
      const changes = yes ? await spread(database, shards) : await plan(database)
      printResult(options, { value: { done: yes, changes }, text: () => inWords(changes, yes) })
    })
  })

async function plan({ db, pool }: Database): Promise<string[]> {
  const client = await pool.connect()
  try {
    const steps = await planDistribution(client, db)
    return steps.map(({ change }) => change)
  } finally {
    client.release()
  }
}

async function spread({ db, pool, pools, appRole }: Database, shards: number): Promise<string[]> {
  const own = pools.operations.totalCount + pools.batches.totalCount
  if ((await countConnections(db)) > own)
    throw new SettingsProblem('Processes of Midmonth use this database: stop them, and run midmonth distribute again')
  const steps = await distribute(db, pool, appRole, { shards, onStep: writeErrorLine })
  return steps.map(({ change }) => change)
}

function inWords(changes: string[], isDone: boolean): string {
  if (changes.length === 0) return 'Every table is at its place: nothing is left to do.'
  return isDone
    ? 'Every table is at its place. Start the processes again.'
    : [...changes, '', 'Nothing was changed. With --yes, midmonth distribute does this.'].join('\n')
}
