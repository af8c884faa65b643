import { type Static, Type } from 'typebox'
import { nextQuery, readPage } from '../contract/list.ts'
import { named, operationsOn, type Words } from '../http/operation.ts'
import { Id } from '../kernel/ids.ts'
import { toWire, WireMoney } from '../kernel/money.ts'
import { namedObject, strictObject, TextOrNull, wordOf } from '../kernel/schemas.ts'
import { Instant, InstantOrNull } from '../kernel/time.ts'
import * as notOurs from '../payouts/books/not-ours.ts'
import * as rules from '../payouts/books/rules.ts'
import { fileRailNamed } from '../payouts/channels/rail.ts'
import { deciderOf } from './decider.ts'
import type { RailsContext } from './operation-context.ts'
import { line } from './partner-schema.ts'
import { railName } from './rail-operations.ts'

const operation = operationsOn<RailsContext>().operationWith({ tag: 'Payouts', isForOperators: true })

const text = Type.String({
  minLength: notOurs.textCharsMin,
  maxLength: notOurs.textCharsMax,
  description: 'A text that the bank’s words contain, in any letter case and with any blanks.',
  examples: ['account maintenance fee'],
})
const note = line(500, {
  description: 'Why the entries are not ours. Must not contain personal data.',
  examples: ['charges of the bank'],
})

const matching = {
  sums: Type.Array(
    namedObject('ExceptionSum', {
      direction: wordOf(['in', 'out'], { description: 'Whether the money arrived or left.' }),
      count: Type.Integer({ minimum: 1 }),
      sum: WireMoney,
    }),
    { description: 'Sums of the closed entries, by currency and direction.' },
  ),
  count: Type.Integer({ minimum: 0, description: 'How many are closed.' }),
  keptCount: Type.Integer({
    minimum: 0,
    description: 'How many more entries have the text but stay open, because they may be about something of ours.',
  }),
}
const Preview = namedObject('ExceptionsByText', {
  ...matching,
  fingerprint: Type.String({
    description: 'Identifies the set of entries that would be closed; send it to close them.',
  }),
})
const Closed = namedObject('ExceptionsClosed', matching)

const PayoutRule = namedObject('PayoutRule', {
  id: Id('payoutRule'),
  rail: railName,
  text: Type.String({ description: 'The text in lower case, with single blanks.' }),
  note: Type.String(),
  status: wordOf(rules.ruleStatuses, {
    description: '`proposed`: the rule closes nothing until another person makes the same rule.',
  }),
  proposedBy: Type.String(),
  proposedAt: Instant,
  confirmedBy: TextOrNull,
  confirmedAt: InstantOrNull,
  endedAt: InstantOrNull,
  closedCount: Type.Integer({ minimum: 0, description: 'How many exceptions the rule has closed.' }),
})
const PayoutRules = namedObject('PayoutRules', {
  rules: Type.Array(PayoutRule),
  hasMore: Type.Boolean({ description: 'Whether there are older rules.' }),
})

const onlyNotOurs =
  'Only exceptions of the kinds `money_in`, `money_out` and `unmatched` are closed. An entry stays open if it contains a reference of ours, or has the amount of a payment that is open, given back or returned, of its batch, or of a settlement.'

const previewPayoutExceptions = operation({
  route: 'GET /operator/v1/payout-exceptions/by-text',
  summary: 'Preview closing all exceptions with a text',
  description: onlyNotOurs,
  query: strictObject({ rail: railName, text }),
  success: { description: 'The entries that would be closed.', schema: Preview },
  problems: ['NotFound'],
  async read(reader, { query, context }) {
    fileRailNamed(context.rails, query.rail)
    const { fingerprint, ...found } = await notOurs.preview(reader, query)
    return { body: { ...matchingView(found), fingerprint } }
  },
})

const closePayoutExceptionsByText = operation({
  route: 'POST /operator/v1/payout-exceptions/by-text/close',
  summary: 'Close all exceptions with a text',
  description: `Closes each exception with \`ignore\`, after a preview. Refused with 409 if the set of exceptions has changed since the preview. ${onlyNotOurs}`,
  body: namedObject('ClosingByText', {
    rail: railName,
    text,
    note,
    fingerprint: Type.String({ maxLength: 64, description: 'The fingerprint of the preview.' }),
  }),
  success: { description: 'The entries that were closed.', schema: Closed },
  problems: ['NotFound'],
  async write(tx, { operator, body, now, context }) {
    const { rail, ...given } = body
    fileRailNamed(context.rails, rail)
    const { person } = operator
    const { fingerprint: _, ...closed } = await notOurs.closeAll(tx, { rail, ...given, person, now })
    const matching = matchingView(closed)
    const details = { person, decision: 'ignore', ...given, ...matching }
    const audit = { action: 'payout_exception.close_all', details, partnerId: null } as const
    return { body: matching, resourceId: rail, audit }
  },
})

const listPayoutRules = operation({
  route: 'GET /operator/v1/payout-rules',
  summary: 'List the rules that close exceptions',
  description: 'Newest first, including ended rules.',
  query: strictObject({
    ...nextQuery('payoutRule', 'rule'),
  }),
  success: { description: 'One page of rules.', schema: PayoutRules },
  async read(reader, { query }) {
    const { rows, hasMore } = await readPage(query, take => rules.list(reader, { before: query.after, take }))
    return { body: { rules: rows, hasMore } }
  },
})

const createPayoutRule = operation({
  route: 'POST /operator/v1/payout-rules',
  summary: 'Make a rule that closes exceptions',
  description: `New entries with the text are closed with \`ignore\` as they are imported. It takes two people: the first request proposes the rule, and the same request of another person makes it active. An operator key is refused. To close exceptions that are already open, use \`closePayoutExceptionsByText\`. ${onlyNotOurs}`,
  body: namedObject('NewPayoutRule', { rail: railName, text, note }),
  success: { description: 'The rule.', schema: PayoutRule },
  problems: ['NotFound'],
  async write(tx, { operator, body, now, context }) {
    fileRailNamed(context.rails, body.rail)
    const { rule, done } = await rules.make(tx, { ...body, by: deciderOf(operator), now })
    const details = { person: operator.person, ...body, ...(done === 'confirmed' ? {} : { isProposed: true }) }
    const audit = { action: 'payout_rule.create', details, partnerId: null } as const
    return { body: rule, resourceId: rule.id, audit: done === 'repeated' ? undefined : audit }
  },
})

const changeOfRule = (verb: 'pause' | 'resume' | 'end', { summary, description }: Words) =>
  operation({
    route: `POST /operator/v1/payout-rules/:ruleId/${verb}`,
    summary,
    description: `Exceptions that the rule has closed stay closed. ${description}`,
    success: { description: 'The rule.', schema: PayoutRule },
    async write(tx, { operator, params: { ruleId: id }, now }) {
      const { rule, hasChanged } = await rules.change(tx, { id, verb, by: deciderOf(operator), now })
      const audit = { action: `payout_rule.${verb}`, details: { person: operator.person }, partnerId: null } as const
      return { body: rule, resourceId: id, audit: hasChanged ? audit : undefined }
    },
  })

const pausePayoutRule = changeOfRule('pause', {
  summary: 'Pause a rule',
  description: 'A paused rule closes nothing until it is resumed. Idempotent.',
})

const resumePayoutRule = changeOfRule('resume', {
  summary: 'Resume a paused rule',
  description: 'An operator key is refused. Idempotent.',
})

const endPayoutRule = changeOfRule('end', {
  summary: 'End a rule',
  description: 'Also ends a proposed rule. Idempotent.',
})

/** Closes exceptions that are not ours by a text: the open ones at once, and future ones by rules. */
export const notOursOperations = named({
  previewPayoutExceptions,
  closePayoutExceptionsByText,
  listPayoutRules,
  createPayoutRule,
  pausePayoutRule,
  resumePayoutRule,
  endPayoutRule,
})

function matchingView({ sums, count, keptCount }: Omit<notOurs.Matching, 'fingerprint'>): Static<typeof Closed> {
  const onWire = sums.map(({ currency, sum, ...rest }) => ({ ...rest, sum: toWire({ amount: sum, currency }) }))
  return { sums: onWire, count, keptCount }
}
