import { type Db, type Reader, sql, type Tx } from '../database/database.ts'
import { newId } from '../kernel/ids.ts'

const limits = {
  // Fewer failures are a restart of the receiver, and not worth a look.
  failuresMax: 3,
  // A killed attempt is repeated after this time, with the same id.
  attemptMsMax: 2 * 60_000,
  unusedMsMax: 86_400_000,
  retryMs: { first: 60_000, max: 3_600_000 },
}

export type ChannelName = 'webhook' | 'email'

/** What needs attention, without names of people, companies or files. */
export type Concern = { kind: string; subject: string | null; notice: string }

type Reported = Concern & { since: string }

/** What changed since the last message that arrived. @property isReminder nothing did, but something has needed attention for long */
export type Message = {
  id: string
  at: string
  began: Reported[]
  ended: Reported[]
  open: Reported[]
  isReminder: boolean
}

type Row = {
  reported: Reported[]
  reportedAt: Date | null
  message: Message | null
  attempts: number
  nextAttemptAt: Date | null
}

/**
 * Claims the message that a channel has to send. Committed before it is sent, so that several workers send it once.
 * @returns undefined if there is nothing to say, another worker is sending, or the next attempt is not due
 */
export async function claim(
  tx: Tx,
  asked: { channel: ChannelName; concerns: readonly Concern[]; reminderMs: number; now: Date },
): Promise<Message | undefined> {
  const { channel, now } = asked
  await sql`
    insert into operator_notices (channel, reported, attempts, checked_at) values (${channel}, '[]', 0, ${now})
    on conflict do nothing`.execute(tx)
  const { rows } = await sql<Row>`
    select reported, reported_at, message, attempts, next_attempt_at
      from operator_notices where channel = ${channel} for update skip locked`.execute(tx)
  const [row] = rows
  if (row === undefined || !isDue(row.nextAttemptAt, now)) return undefined
  const message = nextMessage(row, asked)
  await sql`
    update operator_notices
       set message = ${message === undefined ? null : JSON.stringify(message)},
           attempts = ${message === undefined ? 0 : row.attempts + 1},
           fault = ${message === undefined ? null : sql`fault`},
           next_attempt_at = ${message === undefined ? null : new Date(now.getTime() + limits.attemptMsMax)},
           checked_at = ${now}
     where channel = ${channel}`.execute(tx)
  return message
}

// No wait is longer than `retryMs.max`: a later time is from a worker whose clock was ahead, and would silence the channel until then.
function isDue(nextAttemptAt: Date | null, now: Date): boolean {
  if (nextAttemptAt === null) return true
  const waitMs = nextAttemptAt.getTime() - now.getTime()
  return waitMs <= 0 || waitMs > limits.retryMs.max
}

/** Decides what to say. A message that did not arrive keeps its id until there is something else to say. */
function nextMessage(
  { reported, reportedAt, message }: Pick<Row, 'reported' | 'reportedAt' | 'message'>,
  { concerns, reminderMs, now }: { concerns: readonly Concern[]; reminderMs: number; now: Date },
): Message | undefined {
  const known = new Map([...reported, ...(message?.open ?? [])].map(each => [keyOf(each), each.since]))
  const at = now.toISOString()
  const open = concerns.map(({ kind, subject, notice }) => {
    const since = known.get(keyOf({ kind, subject })) ?? at
    return { kind, subject, notice, since }
  })
  const began = without(open, reported)
  const ended = without(reported, open)
  const isReminder = began.length === 0 && ended.length === 0
  const isReminderDue = open.length > 0 && reportedAt !== null && now.getTime() - reportedAt.getTime() >= reminderMs
  if (isReminder && !isReminderDue) return undefined
  if (message !== null && isSame(message.open, open)) return message
  return { id: newId('operatorNotice', now), at, began, ended, open, isReminder }
}

/** Records that a message arrived. */
export async function recordSent(
  db: Db,
  { channel, message, now }: { channel: ChannelName; message: Message; now: Date },
): Promise<void> {
  await sql`
    update operator_notices
       set reported = ${JSON.stringify(message.open)}, reported_at = ${now}, message = null, attempts = 0, fault = null, next_attempt_at = null
     where channel = ${channel} and message ->> 'id' = ${message.id}`.execute(db)
}

/** Records that a message did not arrive, and when to try again: after a minute, then after twice as long each time, up to an hour. */
export async function recordFailed(
  db: Db,
  { channel, message, fault, now }: { channel: ChannelName; message: Message; fault: string; now: Date },
): Promise<void> {
  const { first, max } = limits.retryMs
  await sql`
    update operator_notices
       set fault = ${fault},
           next_attempt_at = ${now}::timestamptz
             + least(${max}, ${first} * power(2, least(attempts, 10) - 1)) * (0.9 + 0.1 * random()) * interval '1 ms'
     where channel = ${channel} and message ->> 'id' = ${message.id}`.execute(db)
}

/** The channels whose messages do not arrive. */
export async function listFailing(db: Reader): Promise<{ channel: ChannelName; attempts: number; fault: string }[]> {
  const { rows } = await sql<{ channel: ChannelName; attempts: number; fault: string }>`
    select channel, attempts, fault from operator_notices
     where fault is not null and attempts >= ${limits.failuresMax} order by channel`.execute(db)
  return rows
}

/**
 * Forgets channels that no worker has had for a day, so that their failures are not shown for ever. Not at once: during a rolling change
 * of settings, workers that still have a channel would repeat its messages.
 */
export async function forgetOthers(
  db: Db,
  { channels, now }: { channels: readonly ChannelName[]; now: Date },
): Promise<void> {
  const unusedSince = new Date(now.getTime() - limits.unusedMsMax)
  await sql`
    delete from operator_notices
     where channel <> all(${channels}::text[]) and checked_at < ${unusedSince}`.execute(db)
}

function keyOf({ kind, subject }: Pick<Concern, 'kind' | 'subject'>): string {
  return JSON.stringify([kind, subject])
}

function without(all: readonly Reported[], others: readonly Reported[]): Reported[] {
  const keys = new Set(others.map(keyOf))
  return all.filter(each => !keys.has(keyOf(each)))
}

function isSame(a: readonly Reported[], b: readonly Reported[]): boolean {
  return a.length === b.length && without(a, b).length === 0
}
