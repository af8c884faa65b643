import { type Static, Type } from 'typebox'
import { cutPage, pageOf, pageQuery } from '../contract/list.ts'
import { operation } from '../http/described-route.ts'
import { operatorOf, recordOperatorChange } from '../http/operator-change.ts'
import type { ApiContext, App } from '../http/server/server.ts'
import { read, withIdempotency } from '../http/with-idempotency.ts'
import { problem } from '../kernel/errors.ts'
import { Id } from '../kernel/ids.ts'
import { toWire, WireMoney } from '../kernel/money.ts'
import { Instant } from '../kernel/time.ts'
import * as notOurs from '../payouts/books/not-ours.ts'
import * as rules from '../payouts/books/rules.ts'
import { fileRailsOf, type Rail } from '../payouts/channels/rail.ts'
import { line } from './partner-schema.ts'
import { railName } from './rail-operations.ts'

const tag = 'Payouts'
const strict = { additionalProperties: false }
const config = { isForOperators: true } as const
const TextOrNull = Type.Union([Type.String(), Type.Null()])
const InstantOrNull = Type.Union([Instant, Type.Null()])

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
    Type.Object(
      {
        direction: Type.Enum(['in', 'out'], { type: 'string', description: 'Whether the money arrived or left.' }),
        count: Type.Integer({ minimum: 1 }),
        sum: WireMoney,
      },
      { title: 'ExceptionSum', ...strict },
    ),
    { description: 'Sums of the closed entries, by currency and direction.' },
  ),
  count: Type.Integer({ minimum: 0, description: 'How many are closed.' }),
  keptCount: Type.Integer({
    minimum: 0,
    description: 'How many more entries have the text but stay open, because they may be about something of ours.',
  }),
}
const Preview = Type.Object(
  {
    ...matching,
    fingerprint: Type.String({
      description: 'Identifies the set of entries that would be closed; send it to close them.',
    }),
  },
  { title: 'ExceptionsByText', ...strict },
)
const Closed = Type.Object(matching, { title: 'ExceptionsClosed', ...strict })

const PayoutRule = Type.Object(
  {
    id: Id('payoutRule'),
    rail: railName,
    text: Type.String({ description: 'The text in lower case, with single blanks.' }),
    note: Type.String(),
    status: Type.Enum([...rules.ruleStatuses], {
      type: 'string',
      description: '`proposed`: the rule closes nothing until another person makes the same rule.',
    }),
    proposedBy: Type.String(),
    proposedAt: Instant,
    confirmedBy: TextOrNull,
    confirmedAt: InstantOrNull,
    endedAt: InstantOrNull,
    closedCount: Type.Integer({ minimum: 0, description: 'How many exceptions the rule has closed.' }),
  },
  { title: 'PayoutRule', ...strict },
)
const PayoutRules = Type.Object(
  { rules: Type.Array(PayoutRule), hasMore: Type.Boolean({ description: 'Whether there are older rules.' }) },
  { title: 'PayoutRules', ...strict },
)

const onlyNotOurs =
  'Only exceptions of the kinds `money_in`, `money_out` and `unmatched` are closed. An entry stays open if it contains a reference of ours, or has the amount of a payment that is open, given back or returned, of its batch, or of a settlement.'

/** Closes exceptions that are not ours by a text: the open ones at once, and future ones by rules. */
export function notOursRoutes(app: App, { db }: ApiContext, { rails }: { rails: readonly Rail[] }): void {
  const requireRail = (name: string) => {
    if (!fileRailsOf(rails).some(each => each.name === name))
      throw problem('NotFound', `There is no rail ${name} that sends files; list the rails`)
  }

  app.get(
    '/operator/v1/payout-exceptions/by-text',
    {
      config,
      schema: operation({
        id: 'previewPayoutExceptions',
        tag,
        summary: 'Preview closing all exceptions with a text',
        description: onlyNotOurs,
        query: Type.Object({ rail: railName, text }, strict),
        success: { status: 200, description: 'The entries that would be closed.', schema: Preview },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        requireRail(request.query.rail)
        const { fingerprint, ...found } = await notOurs.preview(reader, request.query)
        return { status: 200, body: { ...matchingOnWire(found), fingerprint } }
      }),
  )

  app.post(
    '/operator/v1/payout-exceptions/by-text/close',
    {
      config,
      schema: operation({
        id: 'closePayoutExceptionsByText',
        tag,
        summary: 'Close all exceptions with a text',
        description: `Closes each exception with \`ignore\`, after a preview. Refused with 409 if the set of exceptions has changed since the preview. ${onlyNotOurs}`,
        body: Type.Object(
          {
            rail: railName,
            text,
            note,
            fingerprint: Type.String({ maxLength: 64, description: 'The fingerprint of the preview.' }),
          },
          { title: 'ClosingByText', ...strict },
        ),
        success: { status: 200, description: 'The entries that were closed.', schema: Closed },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { rail, ...given } = request.body
        const { now } = request
        requireRail(rail)
        const { person } = operatorOf(request)
        const { fingerprint: _, ...closed } = await notOurs.closeAll(tx, { rail, ...given, person, now })
        const body = matchingOnWire(closed)
        const details = { person, decision: 'ignore', ...given, ...body }
        const change = { action: 'payout_exception.close_all', resourceId: rail, details } as const
        await recordOperatorChange(tx, request, { partnerId: null, change, now })
        return { status: 200, body, resourceId: rail }
      }),
  )

  app.get(
    '/operator/v1/payout-rules',
    {
      config,
      schema: operation({
        id: 'listPayoutRules',
        tag,
        summary: 'List the rules that close exceptions',
        description: 'Newest first, including ended rules.',
        query: Type.Object(
          {
            after: Type.Optional(Id('payoutRule', 'The id of the last rule of this page, to get the next page.')),
            take: pageQuery.take,
          },
          strict,
        ),
        success: { status: 200, description: 'One page of rules.', schema: PayoutRules },
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { take } = pageOf(request.query)
        const found = await rules.list(reader, { before: request.query.after, take: take + 1 })
        const { rows, hasMore } = cutPage(found, { take })
        return { status: 200, body: { rules: rows.map(ruleOnWire), hasMore } }
      }),
  )

  app.post(
    '/operator/v1/payout-rules',
    {
      config,
      schema: operation({
        id: 'createPayoutRule',
        tag,
        summary: 'Make a rule that closes exceptions',
        description: `New entries with the text are closed with \`ignore\` as they are imported. It takes two people: the first request proposes the rule, and the same request of another person makes it active. An operator key is refused. To close exceptions that are already open, use \`closePayoutExceptionsByText\`. ${onlyNotOurs}`,
        body: Type.Object({ rail: railName, text, note }, { title: 'NewPayoutRule', ...strict }),
        success: { status: 200, description: 'The rule.', schema: PayoutRule },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { now } = request
        requireRail(request.body.rail)
        const { person, kind } = operatorOf(request)
        const by = { person, isKey: kind === 'operator_key' }
        const { rule, done } = await rules.make(tx, { ...request.body, by, now })
        const body = ruleOnWire(rule)
        const details = { person, ...request.body, ...(done === 'confirmed' ? {} : { isProposed: true }) }
        const change = { action: 'payout_rule.create', resourceId: rule.id, details } as const
        if (done !== 'repeated') await recordOperatorChange(tx, request, { partnerId: null, change, now })
        return { status: 200, body, resourceId: rule.id }
      }),
  )

  for (const { verb, summary, description } of [
    {
      verb: 'pause',
      summary: 'Pause a rule',
      description: 'A paused rule closes nothing until it is resumed. Idempotent.',
    },
    { verb: 'resume', summary: 'Resume a paused rule', description: 'An operator key is refused. Idempotent.' },
    { verb: 'end', summary: 'End a rule', description: 'Also ends a proposed rule. Idempotent.' },
  ] as const) {
    app.post(
      `/operator/v1/payout-rules/:ruleId/${verb}`,
      {
        config,
        schema: operation({
          id: `${verb}PayoutRule`,
          tag,
          summary,
          description: `Exceptions that the rule has closed stay closed. ${description}`,
          params: Type.Object({ ruleId: Id('payoutRule') }),
          success: { status: 200, description: 'The rule.', schema: PayoutRule },
          problems: ['NotFound'],
        }),
      },
      async (request, reply) =>
        withIdempotency(db, request, reply, async tx => {
          const { ruleId: id } = request.params
          const { now } = request
          const { person, kind } = operatorOf(request)
          const by = { person, isKey: kind === 'operator_key' }
          const { rule, hasChanged } = await rules.change(tx, { id, verb, by, now })
          const change = { action: `payout_rule.${verb}`, resourceId: id, details: { person } } as const
          if (hasChanged) await recordOperatorChange(tx, request, { partnerId: null, change, now })
          return { status: 200, body: ruleOnWire(rule), resourceId: id }
        }),
    )
  }
}

function matchingOnWire({ sums, count, keptCount }: Omit<notOurs.Matching, 'fingerprint'>): Static<typeof Closed> {
  const onWire = sums.map(({ currency, sum, ...rest }) => ({ ...rest, sum: toWire({ amount: sum, currency }) }))
  return { sums: onWire, count, keptCount }
}

function ruleOnWire({ proposedAt, confirmedAt, endedAt, ...rule }: rules.Rule): Static<typeof PayoutRule> {
  const [confirmed, ended] = [confirmedAt, endedAt].map(at => at?.toISOString() ?? null)
  return { ...rule, proposedAt: proposedAt.toISOString(), confirmedAt: confirmed ?? null, endedAt: ended ?? null }
}
