import pg from 'pg'

/** The database could not be reached, or did not answer before the deadline of the request. */
export class Unavailable extends Error {
  readonly outcome: 'nothing-done' | 'unknown'

  constructor(message: string, outcome: 'nothing-done' | 'unknown') {
    super(message)
    this.outcome = outcome
  }
}

/**
 * The outcome of a transaction that ended with a database error. `nothing-done`: the database was busy or could not be
 * reached, and a retry is safe. `unknown`: the connection broke, perhaps during the commit. Undefined for any other error.
 * Source: PostgreSQL error codes, classes 08, 25, 40, 53, 55 and 57; Node's network errors; the driver's own messages.
 */
export function outageOutcome(error: unknown): 'nothing-done' | 'unknown' | undefined {
  if (error instanceof Unavailable) return error.outcome
  if (error instanceof pg.DatabaseError) {
    // 25006: the server is read-only. 25P03: the server ended the transaction because this process had stalled.
    if (/^(25006|25P03|40|53|55P03|57014|57P03)/.test(error.code ?? '') || isOutdatedPlan(error) || isSplitShard(error))
      return 'nothing-done'
    return /^(08|57P)/.test(error.code ?? '') || isLostNode(error) ? 'unknown' : undefined
  }
  // A name with several addresses (`localhost`) gives an error that holds one error per address.
  const { code = '', message = '', syscall } = firstOf(error) as NodeJS.ErrnoException
  if (syscall === 'connect' || syscall === 'getaddrinfo' || /^(ECONNREFUSED|ENOENT)$/.test(code)) return 'nothing-done'
  if (/^timeout (exceeded when trying to connect|expired)|due to connection timeout|establishing an SSL/.test(message))
    return 'nothing-done'
  // Rolling back also fails on a broken connection, and hides the original error.
  const isBroken = /Connection terminated|not queryable|Client was closed|write EPIPE|read ECONNRESET/.test(message)
  return isBroken || /^(ECONNRESET|EPIPE|ETIMEDOUT)$/.test(code) ? 'unknown' : undefined
}

// Citus has no error code for a node that is lost: 58030 is the failure of a disk too, and XX000 any internal error.
function isLostNode({ code, message }: pg.DatabaseError): boolean {
  return (
    code === '58030' ||
    (code === 'XX000' &&
      /connection marked as essential|server closed the connection unexpectedly|terminating connection|remote node|could not commit transaction for shard/.test(
        message,
      ))
  )
}

// Citus has split the shard of a statement that was waiting. The statement was not run.
function isSplitShard({ code, message }: pg.DatabaseError): boolean {
  return code === 'XX000' && message.startsWith('could not find valid entry for shard')
}

function firstOf(error: unknown): unknown {
  return error instanceof AggregateError ? error.errors[0] : error
}

/** Whether a lock was not available within `lock_timeout`. */
export function isLockTimeout(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '55P03'
}

/** Whether the transaction was rolled back in favour of a concurrent one; a retry succeeds. */
export function isDeadlock(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === '40P01' || error.code === '40001')
}

/** Whether the server accepts no connections yet: it is starting, or recovering after a crash. */
export function isNotReady(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '57P03'
}

/** Whether the server accepts no writes: it was made read-only, or is a standby. */
export function isReadOnly(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '25006'
}

/**
 * Whether a migration has altered a column that a prepared statement returns. The statement was not run. PostgreSQL's message may be
 * translated.
 */
export function isOutdatedPlan(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '0A000' && error.routine === 'RevalidateCachedQuery'
}

/** Whether a row with the same unique key exists. */
export function isUniqueViolation(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '23505'
}

/** The name of the violated constraint; undefined for any other error. */
export function brokenConstraint(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError && error.code?.startsWith('23') ? error.constraint : undefined
}

/**
 * Names the constraint in an error of a distributed PostgreSQL, which passes on the message and the detail of a node, but not the field:
 * the triggers there say it in the detail. If the node was sent the rows by `copy`, the code is also missing.
 */
export function nameConstraint(error: unknown): void {
  if (!(error instanceof pg.DatabaseError)) return
  const { code = '', message, detail = '', constraint } = error
  const [, kind = ''] = /violates ([a-z-]+(?: key)?) constraint/.exec(message) ?? []
  if (code === 'XX000') error.code = violations[kind] ?? (detail.startsWith('constraint "') ? '23514' : code)
  if (!error.code?.startsWith('23')) return
  const named = constraint ?? /constraint "(\w+)"/.exec(`${message} ${detail}`)?.[1]
  // The names of a shard end with its number.
  if (named !== undefined) error.constraint = named.replace(/_[0-9]{6,}$/, '')
}

const violations: Record<string, string> = { 'foreign key': '23503', unique: '23505', check: '23514' }
