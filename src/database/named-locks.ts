import { type Db, type Reader, sql, type Tx } from './database.ts'

/**
 * Names of locks for work that may have no row to lock. The space is followed by the id of the locked object. Never rename a
 * space: during an upgrade, both versions must take the same lock.
 */
type LockSpace =
  /** One key of one partner, across requests in any process. */
  | 'idempotency key'
  /** Reading a file of a partner. */
  | 'member import of'
  /** Inserting the imports of a partner. */
  | 'queue of member imports of'
  /** Provoking transitions of a partner's imports in a sandbox. */
  | 'provoked member imports of'
  /** Erasing members of a partner; shared by imports, whose rows and actions an erasure must see. */
  | 'erasure of members of'
  /** Erasing members of any partner; shared by reads with an idempotency key, whose responses an erasure must see. */
  | 'erasure of stored reads'
  /** Replacing the metadata of an object. */
  | 'metadata of'
  /** Moving a partner's clock, and resetting the partner. */
  | 'clock of'
  /** Exporting a batch by hand. */
  | 'export of'
  /** One file of a bank that is being staged. */
  | 'bank file'
  /** Applying bank files of one rail. Payouts never take it. */
  | 'import of bank files'
  /** One purpose of one file rail. */
  | 'payout rail'
  /** The task that closes the pay cycle of a partner. */
  | 'closing of the pay cycle of'
  /** Verifying the books. */
  | 'verification of'
  /** Sealing the books of a partner. */
  | 'sealing of the books of'
  /** Detaching months of transfers, and attaching them. */
  | 'months of'
  /** The stages of the keys of a purpose. */
  | 'stages of'
  /** Rotating a key of the installation. */
  | 'rotation of'
  /** Creating the user with an e-mail address, or linking one to an identity. */
  | 'user'

/** Waits for a lock, and holds it until the transaction ends. */
export async function lockByName(tx: Tx, space: LockSpace, of: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`${space} ${of}`}, 0))`.execute(tx)
}

/** Waits for a lock that its other sharers do not exclude, and holds it until the transaction ends. */
export async function shareByName(tx: Tx, space: LockSpace, of: string): Promise<void> {
  await sql`select pg_advisory_xact_lock_shared(hashtextextended(${`${space} ${of}`}, 0))`.execute(tx)
}

/** Takes a lock if it is free, and holds it until the transaction ends. @returns whether the lock was free */
export async function lockByNameIfFree(tx: Tx, space: LockSpace, of: string): Promise<boolean> {
  const { rows } = await sql<{ isMine: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended(${`${space} ${of}`}, 0)) as is_mine`.execute(tx)
  return rows[0]?.isMine === true
}

/**
 * Runs work that takes several transactions under a lock, if the lock is free. The lock ends with the connection, so a killed
 * process leaves nothing to expire.
 * @param work gets the connection that holds the lock
 * @returns whether the lock was free
 */
export async function holdByNameIfFree(
  db: Db,
  space: LockSpace,
  of: string,
  work: (connection: Reader) => Promise<void>,
): Promise<boolean> {
  return await db.connection().execute(async connection => {
    const lock = sql`hashtextextended(${`${space} ${of}`}, 0)`
    const { rows } = await sql<{ isMine: boolean }>`select pg_try_advisory_lock(${lock}) as is_mine`.execute(connection)
    if (rows[0]?.isMine !== true) return false
    try {
      await work(connection)
    } finally {
      await sql`select pg_advisory_unlock(${lock})`.execute(connection)
    }
    return true
  })
}
