import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ApiResponse, locatedId } from '../harness/api-response.ts'
import { citusUrl } from '../harness/citus.ts'
import { type Harness, startHarness } from '../harness/harness.ts'
import { midmonthHere } from '../program/program.ts'

// Runs on the Citus of MIDMONTH_TEST_CITUS_URL only, with at least two nodes that take shards.

// A move makes some hundreds of tables with their indexes and keys, which took a minute on a busy machine.
const moveMsMax = 300_000

let harness: Harness
let superuser: pg.Client

beforeAll(async () => {
  harness = await startHarness()
  const address = new URL(citusUrl ?? '')
  address.pathname = `/${harness.database}`
  superuser = new pg.Client({ connectionString: address.href })
  await superuser.connect()
})
afterAll(async () => {
  await superuser.end()
  await harness.stop()
})

const move = (partnerId: string, to: string, ...options: string[]) =>
  midmonthHere(['partner', 'move', partnerId, '--to', to, ...options], harness.settings)

test('a partner is moved into a separate shard while its members withdraw, and then to another node', {
  timeout: moveMsMax,
}, async () => {
  const { id } = harness.partner
  const [home, target] = [await nodeOf(id), await otherNode(id)]
  const othersHome = await nodeOf(harness.other.partner.id)
  const plan = await move(id, target)
  expect(plan.code).toBe(1)
  expect(plan.stderr).toMatch(
    new RegExp(
      `is on ${home}, with [0-9]+ rows\\.\nIts shard .* It gets a separate shard on ${target}; [^]*Nothing was moved`,
    ),
  )
  expect(await nodeOf(id)).toBe(home)

  for (const to of [target, home]) {
    const { ids, result } = await withdrawUntil(move(id, to, '--yes', '--json'))
    const { stdout, code } = result
    expect(code).toBe(0)
    const { isMoved, writes, longestPauseMs } = JSON.parse(stdout)
    process.stdout.write(`${writes} writes during the move, with a pause of ${longestPauseMs} ms\n`)
    expect(isMoved).toBe(true)
    expect(writes).toBeGreaterThan(0)
    expect(await nodeOf(id)).toBe(to)
    expect(ids.length).toBeGreaterThan(0)
    for (const withdrawal of ids) expect(await harness.getWithdrawal(withdrawal)).toMatchObject({ status: 'held' })
  }
  expect(await nodeOf(harness.other.partner.id)).toBe(othersHome)
  expect(await harness.disagreements()).toEqual([])
  expect((await move(id, home)).stdout).toMatch(`is on ${home} already, in a separate shard`)
})

test('the next run removes what a killed move has left, and moves the partner', { timeout: moveMsMax }, async () => {
  const { id } = harness.other.partner
  const target = await otherNode(id)
  const killed = move(id, target, '--yes')
  await expect.poll(copyingSubscriptions, { timeout: moveMsMax / 3 }).toBeGreaterThan(0)
  expect((await move(harness.partner.id, await otherNode(harness.partner.id), '--yes')).stderr).toMatch(
    'Another move is running',
  )
  await superuser.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and query like '/* midmonth partner move */ select citus_split_shard%' and pid <> pg_backend_pid()`,
  )
  expect((await killed).code).toBe(1)
  expect(await nodeOf(id)).not.toBe(target)
  expect((await move(id, target)).stderr).toMatch(/Earlier moves have left [0-9]+ shards.*, which are removed first/)
  expect((await move(id, target, '--yes')).code).toBe(0)
  expect(await nodeOf(id)).toBe(target)
})

test('a move ends a session that goes on after its command was killed', { timeout: moveMsMax }, async () => {
  const { id } = harness.partner
  const { host, owner: user, database } = harness
  const left = new pg.Client({ host, user, database })
  await left.connect()
  left.on('error', () => undefined)
  await left.query(`select pg_advisory_lock(hashtext('midmonth migrate'))`)
  const copying = left.query(
    '/* midmonth partner move */ select citus_move_shard_placement from (select pg_sleep(600)) t (citus_move_shard_placement)',
  )
  const ended = expect(copying).rejects.toMatchObject({ code: '57P01' })
  expect((await move(id, await otherNode(id), '--yes')).code).toBe(0)
  await ended
})

test.each<[string, () => Promise<[partnerId: string, to: string]>, RegExp]>([
  [
    'an unknown partner',
    async () => ['par_01m8gdad27edz9qa0g5kevd2ym', await otherNode(harness.partner.id)],
    /There is no partner par_\w+; run midmonth partner list/,
  ],
  [
    'an unknown node',
    async () => [harness.partner.id, 'db-9.internal'],
    /There is no node db-9.internal; use one of \S+:[0-9]+/,
  ],
  [
    'a node without shards',
    async () => [harness.partner.id, await coordinator()],
    /The node \S+ takes no shards; use one of/,
  ],
])('%s is refused by a sentence', async (_, wanted, refusal) => {
  const { code, stderr } = await move(...(await wanted()), '--yes')
  expect(code).toBe(1)
  expect(stderr).toMatch(refusal)
})

test('the role of the program cannot move partners, and the one that can is named', async () => {
  const to = await otherNode(harness.partner.id)
  const { DATABASE_OWNER_URL: _, ...settings } = harness.settings
  const { code, stderr } = await midmonthHere(['partner', 'move', harness.partner.id, '--to', to, '--yes'], settings)
  expect(code).toBe(1)
  expect(stderr).toMatch(
    `set DATABASE_OWNER_URL to the address with the role ${harness.owner} instead of ${harness.user}`,
  )
})

/** Withdraws for a new member, again and again, until the work is done. Requests that a pause refuses are repeated. */
async function withdrawUntil<T>(work: Promise<T>): Promise<{ ids: string[]; result: T }> {
  const ids: string[] = []
  let isDone = false
  const withdrawing = (async () => {
    const memberId = await harness.addMember({ available: 20_000_000 })
    while (!isDone) {
      const quoted = await answered(() => harness.requestIntent({ memberId, amount: 1_000 + ids.length }))
      const completed = await answered(() => harness.requestCompletion(quoted.body.withdrawalIntentId))
      ids.push(locatedId(completed))
    }
  })()
  const ended = work.finally(() => {
    isDone = true
  })
  const [result] = await Promise.all([ended, withdrawing])
  return { ids, result }
}

async function answered(request: () => Promise<ApiResponse>): Promise<ApiResponse> {
  for (;;) {
    const response = await request()
    if (response.status === 201) return response
    expect(response.status).toBe(503)
    expect(response.headers['retry-after']).toBeDefined()
  }
}

async function nodeOf(partnerId: string): Promise<string> {
  const { rows } = await superuser.query<{ node: string }>(
    `select nodename || ':' || nodeport as node from citus_shards
      where shardid = get_shard_id_for_distribution_column('tiers', $1::text)`,
    [partnerId],
  )
  return rows[0]?.node ?? 'nowhere'
}

async function otherNode(partnerId: string): Promise<string> {
  const { rows } = await superuser.query<{ node: string }>(
    `select nodename || ':' || nodeport as node from pg_dist_node where shouldhaveshards and noderole = 'primary'`,
  )
  const home = await nodeOf(partnerId)
  return rows.find(({ node }) => node !== home)?.node ?? 'nowhere'
}

async function coordinator(): Promise<string> {
  const { rows } = await superuser.query<{ node: string }>(
    `select nodename || ':' || nodeport as node from pg_dist_node where groupid = 0`,
  )
  return rows[0]?.node ?? 'nowhere'
}

/** Removed by Citus at the end of a move, unlike shards, which may be left from an earlier one. */
async function copyingSubscriptions(): Promise<number> {
  const { rows } = await superuser.query<{ count: number }>(
    'select count(*)::integer as count from pg_dist_cleanup where object_type = 2',
  )
  return rows[0]?.count ?? 0
}
