import { createHash } from 'node:crypto'
import { type Db, type Reader, sql } from '../database/database.ts'
import { problem } from '../kernel/errors.ts'

/**
 * How failures delay the next attempt: not at first, then by a second that doubles with each, up to a maximum. A failure counts
 * until none has followed for `forgottenAfterMs`.
 */
type Policy = { freeMax: number; delayMsMax: number }

const forgottenAfterMs = 24 * 3_600_000
const minute = 60_000

const policies = {
  // Attempts in a browser in which the user has signed in before. Nothing that happens elsewhere delays them.
  browser: { freeMax: 5, delayMsMax: 15 * minute },
  // One guesser of one account.
  accountAndNetwork: { freeMax: 5, delayMsMax: 15 * minute },
  // One guesser of many accounts. An office of people who mistype shares it.
  network: { freeMax: 20, delayMsMax: 15 * minute },
  // Many guessers of one account. The longest delay is short: it is also that of its owner in an unknown browser.
  account: { freeMax: 100, delayMsMax: minute },
  // A password that is required again in a session, before a change.
  session: { freeMax: 5, delayMsMax: 15 * minute },
} satisfies Record<string, Policy>

/** The key that failures are counted by, as stored. */
export type Counter = { hash: Buffer; policy: Policy }

/** @param of the value that the counter is for; only its hash is stored */
export function counterOf(kind: keyof typeof policies, ...of: string[]): Counter {
  const hash = createHash('sha256')
    .update(JSON.stringify([kind, ...of]))
    .digest()
  return { hash, policy: policies[kind] }
}

/**
 * Admits an attempt and counts it as a failure, before its password is checked, so that concurrent attempts cannot outrun the
 * count. `forgive` undoes the count. A refused attempt is not counted.
 * @throws Problem `RateLimitExceeded`
 */
export async function admitAttempt(db: Db, counters: readonly Counter[], now: Date): Promise<void> {
  await db.transaction().execute(async tx => {
    const hashes = counters.map(({ hash }) => hash)
    const { rows } = await sql<{ counter: Buffer; failures: number; refusedUntil: Date }>`
      insert into sign_in_failures as f (counter, failures, failed_at, refused_until)
      select c, 1, ${now}, ${now} from unnest(${hashes}::bytea[]) as c order by c
      on conflict (counter) do update
         set failures = case when f.failed_at <= ${new Date(now.getTime() - forgottenAfterMs)} then 1 else f.failures + 1 end,
             failed_at = ${now}
      returning counter, failures, refused_until`.execute(tx)
    const waitMs = Math.max(...rows.map(({ refusedUntil }) => refusedUntil.getTime() - now.getTime()))
    // Rolls the count back.
    if (waitMs > 0) throw tooMany(waitMs)
    const delays = rows.map(({ counter, failures }) => {
      const policy = counters.find(({ hash }) => hash.equals(counter))?.policy
      return policy === undefined ? 0 : delayMsAfter(failures, policy)
    })
    if (delays.every(ms => ms === 0)) return
    await sql`
      update sign_in_failures f set refused_until = ${now}::timestamptz + d.ms * interval '1 ms'
        from unnest(${rows.map(({ counter }) => counter)}::bytea[], ${delays}::integer[]) as d (counter, ms)
       where f.counter = d.counter and d.ms > 0`.execute(tx)
  })
}

function delayMsAfter(failures: number, { freeMax, delayMsMax }: Policy): number {
  return failures < freeMax ? 0 : Math.min(delayMsMax, 1_000 * 2 ** Math.min(30, failures - freeMax))
}

/**
 * Undoes the count of an attempt that has succeeded.
 * @param forgotten the counters of the person, who has proved who they are: their failures no longer count
 */
export async function forgive(
  tx: Reader,
  { counters, forgotten }: { counters: readonly Counter[]; forgotten: readonly Counter[] },
): Promise<void> {
  const hashes = (of: readonly Counter[]) => of.map(({ hash }) => hash)
  const rest = counters.filter(each => !forgotten.includes(each))
  await sql`
    with locked as (
      select counter from sign_in_failures where counter = any(${hashes(counters)}::bytea[]) order by counter for update),
    lowered as (
      update sign_in_failures f set failures = f.failures - 1, refused_until = least(f.refused_until, f.failed_at)
        from locked l where l.counter = f.counter and f.counter = any(${hashes(rest)}::bytea[]) and f.failures > 1)
    delete from sign_in_failures f using locked l
     where l.counter = f.counter
       and (f.counter = any(${hashes(forgotten)}::bytea[]) or f.failures = 1)`.execute(tx)
}

/** Deletes at most `countMax` counters that no longer count. @returns the number of deleted counters */
export async function forgetFailures(db: Reader, { now, countMax }: { now: Date; countMax: number }): Promise<number> {
  const { rows } = await sql`
    delete from sign_in_failures f
     using (select counter from sign_in_failures where failed_at <= ${new Date(now.getTime() - forgottenAfterMs)}
             limit ${countMax} for update skip locked) old
     where f.counter = old.counter
    returning 1`.execute(db)
  return rows.length
}

function tooMany(waitMs: number) {
  const seconds = Math.ceil(waitMs / 1_000)
  return problem(
    'RateLimitExceeded',
    `Too many failed attempts; try again in ${seconds} s, or in a browser in which you have signed in before`,
    {},
    { 'retry-after': String(seconds) },
  )
}
