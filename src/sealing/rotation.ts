import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { SettingsProblem } from '../config.ts'
import { type Db, type Reader, sql, type Tx } from '../database/database.ts'
import { isLockTimeout } from '../database/errors.ts'
import { holdByNameIfFree, lockByName } from '../database/named-locks.ts'
import { keyBytes } from './aes-gcm.ts'
import { stagesLock } from './fingerprint-stages.ts'
import { addKey, openKeys, openSealer, wrapKey } from './installation-keys.ts'
import { wrapAgain } from './key-copies.ts'
import { leaseLimits } from './key-lease.ts'
import { type KeySource, openProvider } from './key-providers.ts'
import { namesKey, rewrap, type SealedTable } from './rewrap.ts'
import type { KeyPurpose, KeyStage } from './sealer.ts'

// After a step, every process has read the keys or refuses to seal (see KeyLease), what it sealed before is in a transaction, and
// clocks may run a little differently.
const settleMsDefault = leaseLimits.staleMs + 15_000
// Long enough not to be noticed by the database.
const pollMs = 250

export type Rotating = {
  source: KeySource
  now: Date
  /** Called when a step begins, with its description. */
  onStep: (step: string) => void
  /** How many rows of a table have been read. */
  onRead?: (table: string, count: number) => void
  /** How long a process may use the keys that it has read before a step. */
  settleMs?: number
  /** No process uses another key that opens the database, so none stops if that key does not open the new one. */
  othersInEscrow?: boolean
  record: RecordEnd
}

/** Records the end of a rotation, in its transaction. `number`: the key that is used from now on. */
type RecordEnd = (tx: Tx, rotated: { number: number }) => Promise<void>

type KeyUse = { number: number; stage: KeyStage }

/** The number of the key that is used now, and how many rows were sealed with it again. `isContinued`: an earlier run had begun. */
export type Rotated = { number: number; rewrapped: number; isContinued: boolean }

/**
 * Replaces the key that seals, and seals everything again with the new key. A run that was killed is continued by the next.
 * @param db connected as the owner
 * @param rotating.tables every table with sealed values
 * @throws SettingsProblem if a rotation is running
 */
export async function rotateSealing(
  db: Db,
  { tables, ...rotating }: Rotating & { tables: readonly SealedTable[] },
): Promise<Rotated> {
  return await withRotation(db, async holder => {
    const { onStep, record, onRead = () => undefined } = rotating
    const isContinued = (await readUses(holder, 'sealing')).length > 1
    if (!isContinued) await addNext(holder, 'sealing', rotating)
    if ((await readUses(holder, 'sealing')).some(({ stage }) => stage === 'known')) {
      await requireCopies(holder, rotating)
      onStep('Waiting until every process knows the new key')
      await settle(holder, rotating)
      await requireCopies(holder, rotating)
      await sql`
        update installation_key_uses set stage = case stage when 'known' then 'used' else 'retired' end
         where purpose = 'sealing' and stage in ('known', 'used')
           and exists (select from installation_key_uses where purpose = 'sealing' and stage = 'known')`.execute(holder)
    }
    onStep('Waiting until every process seals with the new key')
    await settle(holder, rotating)
    const sealer = await openSealer(db, rotating.source)
    await wrapAgain(holder, rotating.source)
    let rewrapped = 0
    // Rows that were locked are found the second time.
    for (let isDone = false; !isDone; ) {
      for (const table of tables) {
        onStep(`Sealing ${table.table} again`)
        rewrapped += await rewrap(db, { table, sealer, onRead: count => onRead(table.table, count) })
      }
      await drain(holder, onStep)
      onStep('Checking that nothing is sealed with the old key')
      isDone = await removeRetired(holder, { purpose: 'sealing', tables, record })
    }
    return { number: await usedNumber(holder, 'sealing'), rewrapped, isContinued }
  })
}

/** Changes stored fingerprints while a key has a stage: the new one `known`, both `used`, or the old one `retired`. Can be repeated. */
export type Rehash = Readonly<Record<KeyStage, (db: Db) => Promise<void>>>

/**
 * Replaces the key of fingerprints, and makes all stored fingerprints again. A run that was killed is continued by the next.
 *
 * At each step every process finds members by the fingerprints of both keys, and all members have a fingerprint with the same key in the
 * same column, which keeps e-mails and worker ids unique: with the old key first; then, once all have a second with the next key, with that
 * one in the second column; and at the end with that one in the first.
 * @param db connected as the owner
 * @throws SettingsProblem if a rotation is running
 */
export async function rotateFingerprints(
  db: Db,
  { rehash, ...rotating }: Rotating & { rehash: Rehash },
): Promise<Omit<Rotated, 'rewrapped'>> {
  const purpose = 'fingerprints'
  return await withRotation(db, async holder => {
    const isContinued = (await readUses(holder, purpose)).length > 1
    if (!isContinued) await addNext(holder, purpose, rotating)
    for (;;) {
      const [old, next] = await readUses(holder, purpose)
      assert(old !== undefined && next !== undefined)
      const stage = next.stage === 'known' ? 'known' : old.stage
      if (stage === 'known') await requireCopies(holder, rotating)
      rotating.onStep(`Waiting until every process ${said[stage]}`)
      await settle(holder, rotating)
      if (stage === 'known') await requireCopies(holder, rotating)
      const sealer = await openSealer(db, rotating.source)
      rotating.onStep(changes[stage])
      await rehash[stage](db)
      assert(sealer.isRotatingFingerprints === (stage !== 'retired'))
      if (stage === 'known') await setStage(holder, { number: next.number, stage: 'used' })
      if (stage === 'used') await setStage(holder, { number: old.number, stage: 'retired' })
      if (stage !== 'retired') continue
      await wrapAgain(holder, rotating.source)
      await removeRetired(holder, { purpose, tables: [], record: rotating.record })
      return { number: next.number, isContinued }
    }
  })
}

const said: Readonly<Record<KeyStage, string>> = {
  known: 'makes fingerprints with both keys',
  used: 'uses the new fingerprints',
  retired: 'has forgotten the old fingerprints',
}

const changes: Readonly<Record<KeyStage, string>> = {
  known: 'Adding the new fingerprints',
  used: 'Replacing the old fingerprints',
  retired: 'Removing what is stored twice',
}

/** Changes the stage of a key of fingerprints. Waits for the transactions that rely on the stages as they are; see `pinFingerprints`. */
async function setStage(holder: Reader, { number, stage }: KeyUse): Promise<void> {
  for (;;) {
    try {
      return await holder.transaction().execute(async tx => {
        // Others wait behind this one, and not for longer than requests can.
        await sql`set local lock_timeout = '200ms'`.execute(tx)
        await lockByName(tx, ...stagesLock)
        await sql`update installation_key_uses set stage = ${stage} where number = ${number}`.execute(tx)
        if (stage === 'retired')
          await sql`update member_fingerprint_key set number = ${await usedNumber(tx, 'fingerprints')}`.execute(tx)
      })
    } catch (error) {
      if (!isLockTimeout(error)) throw error
      await pause(1_000)
    }
  }
}

/** The purposes whose rotation has begun and not ended. */
export async function unfinishedRotations(db: Reader): Promise<KeyPurpose[]> {
  const { rows } = await sql<{ purpose: KeyPurpose }>`
    select purpose from installation_key_uses group by purpose having count(*) > 1 order by purpose`.execute(db)
  return rows.map(({ purpose }) => purpose)
}

/** The command that begins or continues a rotation. */
export function rotationOf(purpose: KeyPurpose): string {
  return `midmonth installation-key rotate${purpose === 'fingerprints' ? ' --fingerprints' : ''}`
}

/**
 * Runs a rotation while no other runs.
 * @param work gets the connection that holds the lock. It changes stages and waits for others on this connection only: a process that was
 *   stopped and has lost the lock fails there, and undoes nothing that another has rotated since.
 */
async function withRotation<T>(db: Db, work: (holder: Reader) => Promise<T>): Promise<T> {
  let result: { done: T } | undefined
  const wasFree = await holdByNameIfFree(db, 'rotation of', 'keys', async holder => {
    result = { done: await work(holder) }
  })
  if (!wasFree || result === undefined)
    throw new SettingsProblem('A rotation is running already, in another process; wait until it ends')
  return result.done
}

async function addNext(holder: Reader, purpose: KeyPurpose, { source, now }: Rotating): Promise<void> {
  const { provider } = await openKeys(holder, source)
  // The lock of the rotation keeps the number free.
  const { rows } = await sql<{ number: number }>`
    select max(number) + 1 as number from installation_key_uses`.execute(holder)
  const number = rows[0]?.number ?? 1
  if (number > 255)
    throw new SettingsProblem('The keys of an installation are numbered up to 255, so no further rotation is possible')
  const wrapped = await wrapKey(provider, { number, key: randomBytes(keyBytes) })
  await holder.transaction().execute(async tx => {
    // Both the keys and their copies are written under this lock.
    await sql`lock table installation_keys in exclusive mode`.execute(tx)
    await addKey(tx, { number, purpose, stage: 'known', wrapped, provider: provider.id, now })
  })
}

/**
 * Refuses to use a new key that another copy of the keys lacks: processes that run with it, as in a move, could neither seal nor start.
 * @throws SettingsProblem unless the others are in escrow
 */
async function requireCopies(holder: Reader, { source, othersInEscrow = false }: Rotating): Promise<void> {
  const { rows } = await sql<{ provider: string }>`
    select k.provider from installation_keys k join installation_key_uses u on u.number = k.number
     group by k.provider
    having count(*) < (select count(*) from installation_key_uses)
       and count(*) filter (where u.stage <> 'known') = (select count(*) from installation_key_uses where stage <> 'known')
     order by k.provider`.execute(holder)
  const lacking = rows.map(({ provider }) => provider)
  const configured = (await openProvider(source))?.id
  if (lacking.length === 0 || (othersInEscrow && !lacking.some(id => id === configured))) return
  throw new SettingsProblem(
    `The key ${lacking.join(' and ')} does not open the new key. If a process uses it, run midmonth installation-key copy for it; ` +
      'if it is only in escrow, add --others-in-escrow. Then run this command again. Nothing is sealed with the new key yet',
  )
}

/** Waits until no process computes with the keys that it had read before this call, and what it has computed is committed. */
async function settle(holder: Reader, { settleMs = settleMsDefault, onStep }: Rotating): Promise<void> {
  await pause(settleMs)
  await drain(holder, onStep)
}

/** Waits for the transactions that are open now. */
async function drain(holder: Reader, onStep: (step: string) => void): Promise<void> {
  const { rows } = await sql<{ transaction: string }>`${openTransactions}`.execute(holder)
  const open = rows.map(({ transaction }) => transaction)
  for (let reported = 0; ; ) {
    const { rows: left } = await sql<{ transaction: string; pid: number }>`
      select * from (${openTransactions}) o where transaction = any(${open}::text[])`.execute(holder)
    if (left.length === 0) return
    if (left.length !== reported) {
      reported = left.length
      onStep(`Waiting for ${left.length} transactions to end (process ids ${left.map(({ pid }) => pid).join(', ')})`)
    }
    await pause(pollMs)
  }
}

// A transaction has a virtual id from its first statement on, and any role may see it.
const openTransactions = sql`
  select l.virtualxid as transaction, l.pid
    from pg_locks l join pg_stat_activity a on a.pid = l.pid
   where l.locktype = 'virtualxid' and l.granted and a.datname = current_database() and l.pid <> pg_backend_pid()`

async function removeRetired(
  holder: Reader,
  { purpose, tables, record }: { purpose: KeyPurpose; tables: readonly SealedTable[]; record: RecordEnd },
): Promise<boolean> {
  return await holder.transaction().execute(async tx => {
    const retired = (await readUses(tx, purpose)).flatMap(({ number, stage }) => (stage === 'retired' ? [number] : []))
    // The tables are read as a whole, which takes longer than a request may.
    await sql`set local statement_timeout = 0`.execute(tx)
    for (const table of tables) if (await namesKey(tx, table, retired)) return false
    await sql`delete from installation_keys where number = any(${retired}::integer[])`.execute(tx)
    await sql`delete from installation_key_uses where number = any(${retired}::integer[])`.execute(tx)
    await record(tx, { number: await usedNumber(tx, purpose) })
    return true
  })
}

async function usedNumber(db: Reader, purpose: KeyPurpose): Promise<number> {
  const number = (await readUses(db, purpose)).findLast(({ stage }) => stage === 'used')?.number
  assert(number !== undefined)
  return number
}

async function readUses(db: Reader, purpose: KeyPurpose): Promise<KeyUse[]> {
  const { rows } = await sql<KeyUse>`
    select number, stage from installation_key_uses where purpose = ${purpose} order by number`.execute(db)
  return rows
}
