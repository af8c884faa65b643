import { createHash } from 'node:crypto'
import { type Static, Type } from 'typebox'
import { ajv } from '../../../kernel/json-schema.ts'
import { amountMax, CurrencyCode, type Money } from '../../../kernel/money.ts'
import { reasonOf } from '../../books/reasons.ts'
import type { PaymentState } from '../../formats/bank-files.ts'
import { isReference } from '../../payments/reference.ts'

/** What the bank says about a transfer, in an answer or a notification. */
export type Transfer = {
  id: string
  /** Ours, if we made it. */
  reference: string | null
  /** Counts the changes of a transfer from 1; 0 for the answer to its creation. Null if the bank gives no number. */
  sequence: number | null
  /** The bank's word for its state. */
  status: string
  state: PaymentState
  /** The bank's code, verbatim. */
  reasonCode: string | null
  amount: Money
  balanceAccountId: string | null
  /** Money that leaves for a bank account; the bank also tells of everything else that moves on the account. */
  isPayout: boolean
}

// The fields that are read. The bank adds others at any time.
const WireTransfer = Type.Object({
  id: Type.String({ pattern: '^[A-Za-z0-9_-]{1,100}$' }),
  status: Type.String({ pattern: '^[A-Za-z]{1,60}$' }),
  reason: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9_]{1,60}$' })),
  externalReason: Type.Optional(Type.Object({ code: Type.Optional(Type.String()) })),
  reference: Type.Optional(Type.String({ maxLength: 200 })),
  category: Type.String(),
  direction: Type.Optional(Type.String()),
  amount: Type.Object({
    value: Type.Integer({ minimum: -amountMax, maximum: amountMax }),
    currency: CurrencyCode,
  }),
  balanceAccount: Type.Optional(Type.Object({ id: Type.Optional(Type.String()) })),
  sequenceNumber: Type.Optional(Type.Integer({ minimum: 0, maximum: 2_147_483_647 })),
})
type WireTransfer = Static<typeof WireTransfer>
const isWireTransfer = ajv.compile<WireTransfer>(WireTransfer)

/** An answer or a notification does not have the documented shape. */
export class UnexpectedShape extends Error {}

/** @throws UnexpectedShape */
export function readTransfer(wire: unknown): Transfer {
  if (!isWireTransfer(wire)) {
    const [fault] = isWireTransfer.errors ?? []
    throw new UnexpectedShape(
      `A transfer has an unexpected shape: ${fault?.instancePath ?? ''} ${fault?.message ?? ''}`,
    )
  }
  const { id, status, reference, category, direction, amount, balanceAccount, sequenceNumber } = wire
  const state = stateOf(status)
  return {
    ...{ id, status, state },
    reference: reference ?? null,
    sequence: sequenceNumber ?? null,
    reasonCode: state === 'failed' || state === 'returned' ? reasonCodeOf(wire) : null,
    amount: { amount: BigInt(amount.value), currency: amount.currency },
    balanceAccountId: balanceAccount?.id ?? null,
    isPayout: category === 'bank' && direction !== 'incoming',
  }
}

/** The schema's code of the receiving bank if it is known, since it says more; otherwise the bank's own. */
function reasonCodeOf({ reason, externalReason }: WireTransfer): string | null {
  const external = externalReason?.code
  return external !== undefined && reasonOf(external).isKnown ? external : (reason ?? null)
}

const states: ReadonlyMap<string, PaymentState> = new Map([
  // The money has left the account. The receiving bank may still refuse or return it.
  ['booked', 'paid'],
  ['refused', 'failed'],
  ['failed', 'failed'],
  ['cancelled', 'failed'],
  ['rejected', 'failed'],
  ['expired', 'failed'],
  ['returned', 'returned'],
])

/** Every other status, also one that is new, decides nothing. */
function stateOf(status: string): PaymentState {
  return states.get(status) ?? 'pending'
}

const TransferList = Type.Object({
  data: Type.Optional(Type.Array(Type.Unknown(), { maxItems: 1_000 })),
  _links: Type.Optional(
    Type.Object({ next: Type.Optional(Type.Object({ href: Type.Optional(Type.String({ maxLength: 10_000 })) })) }),
  ),
})
const isTransferList = ajv.compile<Static<typeof TransferList>>(TransferList)

/** Something from the bank that cannot be read. */
export type Unreadable = {
  /** A sentence without bank details and names. */
  why: string
  /** Of the content, in hexadecimal: the same content has one exception. */
  sha256: string
  /** The bank's id of the transfer and our reference, if they can be read. */
  transferId: string | null
  reference: string | null
}

const Named = Type.Object({
  id: Type.Optional(Type.Unknown()),
  reference: Type.Optional(Type.Unknown()),
})
const isNamed = ajv.compile<Static<typeof Named>>(Named)

/** @property content what `sha256` is of: bytes, or a value that was parsed from JSON */
type Unread = { why: string; content: unknown; transfer?: unknown }

export function toUnreadable({ why, content, transfer }: Unread): Unreadable {
  const { id, reference } = isNamed(transfer) ? transfer : {}
  const bytes = Buffer.isBuffer(content) ? content : JSON.stringify(content)
  return {
    why,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    transferId: typeof id === 'string' && /^[A-Za-z0-9_-]{1,100}$/.test(id) ? id : null,
    reference: typeof reference === 'string' && isReference(reference) ? reference : null,
  }
}

/** One page of a list. */
export type TransferPage = {
  transfers: Transfer[]
  /** Others on the page; they must not keep those back that can be read. */
  unreadable: Unreadable[]
  /** The cursor of the next page; null on the last one. */
  next: string | null
}

/**
 * Reads one page of a list. The link to the next page is not followed, since it could lead to another host; only its cursor
 * is used.
 * @throws UnexpectedShape
 */
export function readTransferList(wire: unknown): TransferPage {
  if (!isTransferList(wire)) throw new UnexpectedShape('A list of transfers has an unexpected shape')
  const href = wire._links?.next?.href
  const next = href === undefined ? null : URL.parse(href, 'https://adyen.invalid')?.searchParams.get('cursor')
  const page: TransferPage = { transfers: [], unreadable: [], next: next ?? null }
  for (const each of wire.data ?? []) {
    try {
      page.transfers.push(readTransfer(each))
    } catch (error) {
      if (!(error instanceof UnexpectedShape)) throw error
      page.unreadable.push(toUnreadable({ why: error.message, content: each, transfer: each }))
    }
  }
  return page
}

const Notification = Type.Object({
  type: Type.Optional(Type.String()),
  environment: Type.String(),
  data: Type.Unknown(),
})
const isNotification = ajv.compile<Static<typeof Notification>>(Notification)

/**
 * Reads a notification.
 * @returns null if it is about something other than a transfer
 * @throws UnexpectedShape
 */
export function readNotification(wire: unknown): { environment: string; transfer: Transfer } | null {
  if (!isNotification(wire)) throw new UnexpectedShape('A notification has an unexpected shape')
  const { type, environment, data } = wire
  if (type !== undefined && !type.startsWith('balancePlatform.transfer.')) return null
  return { environment, transfer: readTransfer(data) }
}
