import assert from 'node:assert/strict'
import { mkdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { superuser } from '@midmonth/embedded-postgres'
import { seedEmployer, settle } from '../../bench/dataset/seed.ts'
import { withClient } from '../../bench/machine/postgres.ts'
import { startEmbeddedPostgres } from '../../src/database/embedded.ts'
import { type Figures, Load } from './upgrade/load.ts'
import { copyVersion, makeNextVersion, midmonth, type Running, start, type Version } from './upgrade/programs.ts'

export const title =
  'a filled database is upgraded under load, also when migrating is killed: every second is answered, and the old program serves beside the new one'

// A partner with 50,000 members, whose intents and withdrawals have a million events. The times need a machine without other work. Its
// size and the requests per second can be set, for work on the drill itself: DRILL_INTENTS, DRILL_RATE.
const seeded = { members: 50_000, intents: Number(process.env.DRILL_INTENTS ?? 385_000) }
const limits = { p99MsMax: 1_000, quietMs: 15_000, besideMs: 20_000, killAfterMs: 10_000, killsMax: 4 }

export async function run(say: (line: string) => void): Promise<void> {
  const folder = path.join(tmpdir(), `midmonth-upgrade-drill-${process.pid}`)
  // PostgreSQL, which does not run as root, keeps its data below it.
  mkdirSync(folder, { mode: 0o755 })
  const postgres = await startEmbeddedPostgres({
    dataDir: path.join(folder, 'data'),
    checkoutDir: fileURLToPath(new URL('../..', import.meta.url)),
  })
  const started: Running[] = []
  let load: Load | undefined
  try {
    const { host, database, user } = postgres.connection
    const urlOf = (role: string) => `postgres://${role}@/${database}?host=${encodeURIComponent(host)}`
    const env = { DATABASE_URL: urlOf(user), DATABASE_OWNER_URL: urlOf(postgres.ownerConnection.user) }
    const old = copyVersion(path.join(folder, 'old'), { env, logs: folder })
    const next = makeNextVersion(path.join(folder, 'next'), { env, logs: folder })
    const startOne = async (version: Version, role: '--api' | '--worker') => {
      const running = await start(version, role)
      started.push(running)
      return running
    }

    await succeed(old, ['migrate'])
    const { key, members } = await fill(urlOf(superuser), say)

    const oldApi = await startOne(old, '--api')
    const oldWorker = await startOne(old, '--worker')
    load = new Load({ key, members, addresses: [oldApi.address], phase: 'old program alone' })
    const phases: Figures[] = []
    const endPhase = async (following: string) => {
      const figures = await load?.endPhase(following)
      assert(figures !== undefined)
      phases.push(figures)
      say(inWords(figures))
    }
    await pause(limits.quietMs)
    await endPhase('migrate, killed and continued, beside the old program')

    await migrateWithKills(next, urlOf(superuser), say)
    await endPhase('old and new programs side by side')

    const newApi = await startOne(next, '--api')
    const newWorker = await startOne(next, '--worker')
    load.sendTo([oldApi.address, newApi.address])
    await pause(limits.besideMs)
    const refused = await midmonth(next, ['migrate', '--contract']).ended
    assert.equal(refused.code, 1)
    assert.match(refused.stderr, /cannot be migrated further while programs run that know migrations only up to \d{4}/)
    say(`migrate --contract is refused: ${refused.stderr.trim().split('\n').at(-1)}`)
    await endPhase('the old program stops')

    load.sendTo([newApi.address])
    await Promise.all([oldApi.stop(), oldWorker.stop()])
    await endPhase('migrate --contract')

    for (const line of (await succeed(next, ['migrate', '--contract'])).trim().split('\n')) say(line)
    await endPhase('new program alone')
    await pause(limits.quietMs)
    await endPhase('end')

    await load.stop()
    await Promise.all([newApi.stop(), newWorker.stop()])
    await checkSchema(urlOf(superuser))
    say((await succeed(next, ['ledger', 'verify'])).trim().split('\n').at(-1) ?? '')
    for (const { phase, p99, silentSeconds, failures } of phases) {
      assert.equal(silentSeconds, 0, `${phase}: no response in ${silentSeconds} seconds`)
      assert.deepEqual(failures, {}, phase)
      assert(p99 <= limits.p99MsMax, `${phase}: p99 ${p99} ms`)
    }
  } finally {
    await load?.stop()
    for (const running of started) await running.stop()
    await postgres.stop()
    if (process.env.DRILL_KEEP === undefined) rmSync(folder, { recursive: true, force: true })
  }
}

async function fill(url: string, say: (line: string) => void) {
  const past = { intents: seeded.intents, pending: 10_000 }
  const employer = await seedEmployer(url, { name: 'Acme Couriers', firstMember: 0, members: seeded.members, past })
  await withClient(url, async client => {
    // The seeded ids begin with the time 0, and the worker would drop events as old as that.
    await client.query(
      `set session_replication_role = replica;
       with moved as (delete from events returning *)
       insert into events (partner_id, id, type, resource_id, sequence, data, created_at, position)
       select partner_id, first_id('evt', date_trunc('month', now())) || right(id, 16), type, resource_id, sequence, data,
              date_trunc('month', now()), position
         from moved;
       set session_replication_role = default`,
    )
    await client.query(
      `insert into request_log (partner_id, id, created_at, method, route, path, status, duration_ms, key_id, is_replayed, error_codes)
       select $1, first_id('req', now() - interval '1 day') || lpad(n::text, 16, '0'), now() - interval '1 day', 'GET', '/v1/tiers', '/v1/tiers', 200, 3, 'key_1', false, '{}'
         from generate_series(1, $2::integer) as n`,
      [employer.partnerId, seeded.intents * 2],
    )
    const { rows } = await client.query<Record<string, string>>(
      `select (select count(*) from events) as events, (select count(*) from ledger_transfers) as transfers,
              (select count(*) from request_log) as requests, pg_size_pretty(pg_database_size(current_database())) as size`,
    )
    say(
      `filled: ${rows[0]?.events} events, ${rows[0]?.transfers} transfers, ${rows[0]?.requests} requests, ${rows[0]?.size}`,
    )
  })
  await settle(url)
  return employer
}

/** Kills migrating with SIGKILL in several steps, and then lets it end. */
async function migrateWithKills(next: Version, url: string, say: (line: string) => void): Promise<void> {
  const began = performance.now()
  let killedIn = ''
  for (let kills = 0; ; kills++) {
    const running = midmonth(next, ['migrate'])
    const isKilled = kills < limits.killsMax && (await hasMovedOn(url, killedIn, running.ended))
    if (isKilled) running.child.kill('SIGKILL')
    const { code, stdout, stderr } = await running.ended
    for (const line of stderr
      .trim()
      .split('\n')
      .filter(each => each !== ''))
      say(line)
    if (isKilled) {
      killedIn = await readPlace(url)
      say(`killed in ${killedIn}`)
      continue
    }
    assert.equal(code, 0, stderr)
    say(`${stdout.trim()} (${Math.round((performance.now() - began) / 1_000)} s)`)
    return
  }
}

/** Waits until migrating is somewhere in another step or further in a back-fill. @returns false if it ends before */
async function hasMovedOn(url: string, place: string, ended: Promise<unknown>): Promise<boolean> {
  let hasEnded = false
  void ended.then(() => {
    hasEnded = true
  })
  while (!hasEnded) {
    const now = await readPlace(url)
    if (now !== '' && now !== place) {
      await pause(limits.killAfterMs * Math.random())
      return !hasEnded
    }
    await pause(100)
  }
  return false
}

/** The first step that is not finished, and its rows so far; empty if there is none. */
async function readPlace(url: string): Promise<string> {
  return await withClient(url, async client => {
    const { rows } = await client.query<{ place: string }>(
      `select migration || ', step ' || number || ', after ' || row_count || ' rows' as place from migration_steps
        where finished_at is null and phase = 'expand' order by migration, number limit 1`,
    )
    return rows[0]?.place ?? ''
  })
}

async function checkSchema(url: string): Promise<void> {
  await withClient(url, async client => {
    const { rows } = await client.query(
      `select (select count(*) from events where subject_number is null)::integer as "withoutNumber",
              (select count(*) from pg_index i join pg_inherits p on p.inhrelid = i.indrelid
                where p.inhparent = 'events'::regclass and i.indisvalid and i.indexrelid::regclass::text like 'one_event_per_subject%')
                = (select count(*) from pg_inherits where inhparent = 'events'::regclass) as "hasKeys",
              (select relkind = 'p' from pg_class where oid = 'request_log'::regclass) as "isPartitioned",
              (select count(*) from migration_steps where finished_at is null)::integer as unfinished`,
    )
    assert.deepEqual(rows, [{ withoutNumber: 0, hasKeys: true, isPartitioned: true, unfinished: 0 }])
  })
}

async function succeed(version: Version, args: string[]): Promise<string> {
  const { code, stdout, stderr } = await midmonth(version, args).ended
  assert.equal(code, 0, `${args.join(' ')}: ${stdout}${stderr}`)
  return stderr + stdout
}

function inWords({ phase, seconds, requests, failures, silentSeconds, p50, p99, max }: Figures): string {
  const failed = Object.entries(failures).map(([what, count]) => `${count} × ${what}`)
  return `${phase}: ${seconds} s, ${requests} requests, ${failed.join(', ') || 'no failure'}, ${silentSeconds} s without a response, ms p50 ${p50}, p99 ${p99}, max ${max}`
}
