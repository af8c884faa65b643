import pg from 'pg'
import { type Asked, amountOfFirstLine, amountOfIntent, idAt, outcomeOf, type Request } from './clients.ts'

/**
 * What is wrong, one sentence per row. The auditor shares no code with the program: it reads the tables with its own SQL
 * and does its own arithmetic, against what the clients wrote down.
 */
export type Findings = {
  /** Acknowledged, but not in the database exactly as acknowledged. */
  lost: string[]
  /** Two effects of one key, one intent, one reference. */
  duplicated: string[]
  /** In the database, but nobody ever asked for it. */
  ghost: string[]
  /** The books, recomputed from the rows of the domain. */
  books: string[]
}

export async function audit(databaseUrl: string, log: Asked[]): Promise<Findings> {
  const rows = await read(databaseUrl)
  return {
    lost: [...lostOf(rows, log), ...unheardOf(rows)],
    duplicated: [...differentAnswers(log), ...duplicatedOf(rows)],
    ghost: ghostsOf(rows, log),
    books: booksOf(rows),
  }
}

// Whole numbers of any size come as text, and become bigint here.
type Id = string
type PayRun = { partner_id: Id; id: Id; pay_cycle_id: Id; status: string; was_available: boolean }
type Line = { pay_run_id: Id; member_id: Id; amount: bigint; currency: string }
type Terms = {
  member_id: Id
  pay_cycle_id: Id
  status: string
  currency: string
  amount: bigint
  net: bigint
  fee: bigint
  employer_fee: bigint
}
type Intent = { partner_id: Id; id: Id } & Terms
type Withdrawal = {
  partner_id: Id
  id: Id
  withdrawal_intent_id: Id
  adjusted_in_cycle_id: Id | null
  behaviour: string | null
} & Terms
type Transfer = {
  partner_id: Id
  movement_id: Id
  reason: string
  debit: string
  credit: string
  amount: bigint
  currency: string
  member_id: Id | null
  pay_cycle_id: Id | null
}
type Balance = { partner_id: Id; member_id: Id; currency: string; available: bigint; owed: bigint }
type Cycle = { partner_id: Id; id: Id; start_date: string; end_date: string; day_after: string; status: string }
type Key = { partner_id: Id; key: string; status: number; body: string }
type Event = { resource_id: Id; type: string; sequence: number }
type Payment = {
  reference: string
  behaviour: string
  amount: bigint
  currency: string
  paid: number
  failed: number
  returned: number
}

async function read(databaseUrl: string) {
  const client = new pg.Client({
    connectionString: databaseUrl,
    types: {
      getTypeParser: (oid, format) =>
        oid === pg.types.builtins.INT8 ? BigInt : pg.types.getTypeParser(oid, format as 'text'),
    },
  })
  await client.connect()
  const all = async <T extends object>(text: string) => (await client.query<T>(text)).rows
  const terms = 'member_id, pay_cycle_id, status, currency, amount, net, fee, employer_fee'
  try {
    await client.query('begin isolation level repeatable read')
    return {
      payRuns: await all<PayRun>(
        'select partner_id, id, pay_cycle_id, status, available_at is not null as was_available from pay_runs order by id',
      ),
      lines: await all<Line>(
        'select pay_run_id, member_id, amount, currency from pay_run_lines order by pay_run_id, line',
      ),
      intents: await all<Intent>(`select partner_id, id, ${terms} from withdrawal_intents order by id`),
      withdrawals: await all<Withdrawal>(
        `select partner_id, id, withdrawal_intent_id, adjusted_in_cycle_id, ${terms} from withdrawals order by id`,
      ),
      transfers: await all<Transfer>(
        'select partner_id, movement_id, reason, debit, credit, amount, currency, member_id, pay_cycle_id from ledger_transfers order by id',
      ),
      balances: await all<Balance>('select partner_id, member_id, currency, available, owed from ledger_balances'),
      cycles: await all<Cycle>(
        'select partner_id, id, start_date::text, end_date::text, (end_date + 1)::text as day_after, status from pay_cycles order by partner_id, start_date',
      ),
      keys: await all<Key>('select partner_id, key, status, body from idempotency_keys'),
      events: await all<Event>(
        `select resource_id, type, sequence from events where type ~ '^(withdrawal|intent|pay_run)[.]' order by resource_id, sequence`,
      ),
      payments: await all<Payment>(
        `select p.reference, p.behaviour, p.amount, p.currency,
                count(*) filter (where r.outcome = 'paid')::integer as paid,
                count(*) filter (where r.outcome = 'failed')::integer as failed,
                count(*) filter (where r.outcome = 'returned')::integer as returned
           from simulated_bank_payments p left join simulated_bank_reports r on r.reference = p.reference
          group by p.reference`,
      ),
    }
  } finally {
    await client.end()
  }
}

type Rows = Awaited<ReturnType<typeof read>>

function lostOf(rows: Rows, log: Asked[]): string[] {
  const payRuns = byId(rows.payRuns)
  const intents = byId(rows.intents)
  const withdrawals = byId(rows.withdrawals)
  const linesOf = Map.groupBy(rows.lines, line => line.pay_run_id)
  const keys = new Map(rows.keys.map(row => [`${row.partner_id} ${row.key}`, row]))

  return log.flatMap(asked => {
    const [answer] = asked.answers
    if (answer === undefined || outcomeOf(asked) !== 'acknowledged') return []
    const kept = keys.get(`${asked.partnerId} ${asked.key}`)
    if (kept === undefined) return [`${inWords(asked)}: its idempotency key is not there`]
    if (kept.status !== answer.status || kept.body !== answer.body)
      return [`${inWords(asked)}: another answer is kept: ${kept.status} ${kept.body}`]
    const missing = missingOf(asked.request, answer)
    return missing === undefined ? [] : [`${inWords(asked)}: ${missing}; answered ${answer.status} ${answer.body}`]
  })

  function missingOf(
    request: Request,
    { body, location }: { body: string; location: string | null },
  ): string | undefined {
    switch (request.action) {
      case 'pay run': {
        const id = idAt(location)
        if (!payRuns.has(id)) return `there is no pay run ${id}`
        const found = (linesOf.get(id) ?? []).map(line => `${line.member_id} ${line.amount} ${line.currency}`).join()
        const wanted = request.lines.map(line => `${line.memberId} ${line.amount} GBP`).join()
        return found === wanted ? undefined : `pay run ${id} has the lines ${found}`
      }
      case 'revert': {
        const status = payRuns.get(request.subject)?.status
        return status === 'Reverted' ? undefined : `pay run ${request.subject} is ${status}`
      }
      case 'intent': {
        const { withdrawalIntentId, netAmount, fee } = JSON.parse(body)
        const intent = intents.get(withdrawalIntentId)
        if (intent === undefined) return `there is no intent ${withdrawalIntentId}`
        const found = [intent.member_id, intent.amount, intent.net, intent.fee].join()
        const wanted = [request.memberId, request.amount, netAmount.amount, fee.amount].join()
        return found === wanted ? undefined : `intent ${withdrawalIntentId} is ${found}`
      }
      case 'complete': {
        const withdrawal = withdrawals.get(idAt(location))
        if (withdrawal === undefined) return `there is no withdrawal ${location}`
        if (withdrawal.withdrawal_intent_id !== request.subject) return `${location} is of another intent`
        const intent = intents.get(request.subject)
        return intent?.status === 'completed' ? undefined : `intent ${request.subject} is ${intent?.status}`
      }
      case 'cancel intent': {
        const status = intents.get(request.subject)?.status
        return status === 'cancelled' ? undefined : `intent ${request.subject} is ${status}`
      }
      case 'cancel withdrawal': {
        const status = withdrawals.get(request.subject)?.status
        return status === 'cancelled' ? undefined : `withdrawal ${request.subject} is ${status}`
      }
      default:
        return request satisfies never
    }
  }
}

// The bank's word counts as acknowledged, too: what it did is what we know of it.
function unheardOf({ withdrawals, payments }: Rows): string[] {
  const paymentOf = new Map(payments.map(payment => [payment.reference, payment]))
  return withdrawals.flatMap(({ id, status }) => {
    const payment = paymentOf.get(id)
    const truth =
      payment === undefined || payment.paid + payment.failed === 0
        ? ['held', 'cancelled', 'submitted']
        : [payment.returned > 0 ? 'returned' : payment.paid > 0 ? 'paid' : 'failed']
    return truth.includes(status) ? [] : [`withdrawal ${id} is ${status}, and to the bank it is ${truth.join(' or ')}`]
  })
}

function differentAnswers(log: Asked[]): string[] {
  return log.flatMap(asked => {
    const different = new Set(asked.answers.map(({ status, body, location }) => `${status} ${location ?? ''} ${body}`))
    return different.size <= 1 ? [] : [`${inWords(asked)}: answered differently: ${[...different].join(' and ')}`]
  })
}

function duplicatedOf({ payRuns, lines, intents, withdrawals, payments }: Rows): string[] {
  const firstLines = firstLineOf(lines)
  // Amounts are serial numbers: two of the same amount are two effects of one request.
  const payRunTwins = twins(payRuns, ({ partner_id, id }) => `${partner_id}, first line ${firstLines.get(id)}`)
  const intentTwins = twins(intents, ({ partner_id, amount }) => `${partner_id}, amount ${amount}`)
  const withdrawalTwins = twins(withdrawals, ({ withdrawal_intent_id: intent }) => `intent ${intent}`)
  // The bank of this account says everything twice.
  const paidTwice = payments.filter(
    ({ paid, failed, returned, behaviour }) => paid > (behaviour === 'twice' ? 2 : 1) || failed > 1 || returned > 1,
  )
  return [
    ...payRunTwins.map(of => `pay runs of one request: ${of}`),
    ...intentTwins.map(of => `intents of one request: ${of}`),
    ...withdrawalTwins.map(of => `withdrawals of one intent: ${of}`),
    ...paidTwice.map(({ reference, paid }) => `payment ${reference} was executed ${paid} times`),
  ]
}

function twins<T extends { id: Id }>(all: T[], of: (each: T) => string): string[] {
  return [...Map.groupBy(all, of)]
    .filter(([, same]) => same.length > 1)
    .map(([what, same]) => `${what}: ${same.map(({ id }) => id).join(', ')}`)
}

function ghostsOf(rows: Rows, log: Asked[]): string[] {
  // A refusal says that nothing was done, so that only the others explain an effect.
  const wanted = log.filter(asked => outcomeOf(asked) !== 'refused')
  const explained = new Set(wanted.map(({ partnerId, request }) => `${partnerId} ${effectOf(request)}`))
  const firstLines = firstLineOf(rows.lines)
  const effects = [
    ...rows.payRuns.map(({ partner_id, id }) => ({ of: id, effect: `${partner_id} pay run of ${firstLines.get(id)}` })),
    ...rows.payRuns
      .filter(({ status }) => status === 'Reverted')
      .map(({ partner_id, id }) => ({ of: id, effect: `${partner_id} revert of ${id}` })),
    ...rows.intents.map(({ partner_id, id, amount }) => ({ of: id, effect: `${partner_id} intent of ${amount}` })),
    ...rows.intents
      .filter(({ status }) => status === 'cancelled')
      .map(({ partner_id, id }) => ({ of: id, effect: `${partner_id} cancel intent of ${id}` })),
    ...rows.withdrawals.map(({ partner_id, id, withdrawal_intent_id: intent }) => ({
      of: id,
      effect: `${partner_id} complete of ${intent}`,
    })),
    ...rows.withdrawals
      .filter(({ status }) => status === 'cancelled')
      .map(({ partner_id, id }) => ({ of: id, effect: `${partner_id} cancel withdrawal of ${id}` })),
  ]
  const asked = new Set(wanted.map(({ partnerId, key }) => `${partnerId} ${key}`))
  const withdrawals = byId(rows.withdrawals)
  return [
    ...effects
      .filter(({ effect }) => !explained.has(effect))
      .map(({ of, effect }) => `${of}: nobody asked for ${effect}`),
    ...rows.keys
      .filter(({ partner_id, key }) => !asked.has(`${partner_id} ${key}`))
      .map(({ key, status }) => `key ${key} is kept with ${status}, and its request was refused or never made`),
    ...rows.payments.flatMap(({ reference, amount }) => {
      const withdrawal = withdrawals.get(reference)
      if (withdrawal === undefined) return [`the bank has a payment ${reference}, which is no withdrawal`]
      if (withdrawal.net !== amount) return [`the bank has ${amount} for ${reference}, which is over ${withdrawal.net}`]
      const { status } = withdrawal
      return ['held', 'cancelled'].includes(status) ? [`the bank has a payment ${reference}, which is ${status}`] : []
    }),
  ]
}

function effectOf(request: Request): string {
  switch (request.action) {
    case 'pay run':
      return `pay run of ${amountOfFirstLine(request.serial)}`
    case 'intent':
      return `intent of ${amountOfIntent(request.serial)}`
    default:
      return `${request.action} of ${request.subject}`
  }
}

const ways: Record<string, string[]> = {
  held: ['held'],
  submitted: ['held', 'submitted'],
  paid: ['held', 'submitted', 'paid'],
  failed: ['held', 'submitted', 'failed'],
  returned: ['held', 'submitted', 'paid', 'returned'],
  cancelled: ['held', 'cancelled'],
}

function booksOf(rows: Rows): string[] {
  return [
    ...wrongBookings(rows),
    ...wrongBalances(rows),
    ...wrongCycles(rows),
    ...wrongTotals(rows),
    ...wrongEvents(rows),
  ]
}

// Every transfer is the consequence of a row of the domain, and every row of the domain has its consequences.
function wrongBookings({ payRuns, lines, intents, withdrawals, transfers, cycles }: Rows): string[] {
  const booked = Map.groupBy(transfers, transfer => transfer.movement_id)
  const intentOf = byId(intents)
  const linesOf = Map.groupBy(lines, line => line.pay_run_id)
  const found: string[] = []

  for (const withdrawal of withdrawals) {
    const intent = intentOf.get(withdrawal.withdrawal_intent_id)
    const terms = (of: Terms | undefined) =>
      of && [of.member_id, of.pay_cycle_id, of.currency, of.amount, of.net, of.fee, of.employer_fee].join()
    if (terms(withdrawal) !== terms(intent)) found.push(`withdrawal ${withdrawal.id} is not what its intent quoted`)
    if (withdrawal.amount !== withdrawal.net + withdrawal.fee)
      found.push(`${withdrawal.id}: amount is not net plus fee`)
    const wanted = bookingsOf(withdrawal).toSorted().join('; ')
    const has = (booked.get(withdrawal.id) ?? []).map(booking).toSorted().join('; ')
    if (wanted !== has)
      found.push(`withdrawal ${withdrawal.id} is ${withdrawal.status} and booked ${has}, not ${wanted}`)
  }
  for (const { id, status, was_available: wasAvailable } of payRuns) {
    const isBooked = (step: string) => wasAvailable && (step === 'pay_run.available' || status === 'Reverted')
    for (const [reason, sign] of [
      ['pay_run.available', 1n],
      ['pay_run.reverted', -1n],
    ] as const) {
      const wanted = new Sums()
      if (isBooked(reason)) for (const line of linesOf.get(id) ?? []) wanted.add(line.member_id, sign * line.amount)
      const has = new Sums()
      for (const transfer of booked.get(id) ?? [])
        if (transfer.reason === reason)
          has.add(transfer.member_id ?? 'nobody', change(transfer, { debit: 'earned_pay' }))
      for (const difference of wanted.differences(has))
        found.push(`pay run ${id} (${status}), ${reason}: ${difference}`)
    }
  }
  const movements = new Set([...withdrawals, ...payRuns, ...cycles].map(({ id }) => id))
  for (const id of booked.keys()) if (!movements.has(id)) found.push(`transfers of ${id}, which is nothing`)
  return found
}

function bookingsOf(withdrawal: Withdrawal): string[] {
  const { net, fee, employer_fee: employerFee, pay_cycle_id: own, adjusted_in_cycle_id: adjusted } = withdrawal
  return (ways[withdrawal.status] ?? []).flatMap(step => {
    const of = (debit: string, credit: string, amount: bigint, isMembers = true) => {
      const { partner_id, currency, member_id } = withdrawal
      const pay_cycle_id = step === withdrawal.status ? (adjusted ?? own) : own
      const transfer = {
        partner_id,
        movement_id: withdrawal.id,
        reason: `withdrawal.${step}`,
        debit,
        credit,
        amount,
        currency,
      }
      return amount === 0n ? [] : [booking({ ...transfer, member_id: isMembers ? member_id : null, pay_cycle_id })]
    }
    const back = (from: string) => [
      ...of(from, 'member_available', net),
      ...of('fees', 'member_available', fee),
      ...of('fees', 'partner_fees', employerFee),
    ]
    switch (step) {
      case 'held':
        return [
          ...of('member_available', 'payouts_pending', net),
          ...of('member_available', 'fees', fee),
          ...of('partner_fees', 'fees', employerFee),
        ]
      case 'paid':
        return of('payouts_pending', 'float', net, false)
      case 'cancelled':
      case 'failed':
        return back('payouts_pending')
      case 'returned':
        return back('float')
      default:
        return []
    }
  })
}

function booking({ reason, debit, credit, amount, currency, member_id, pay_cycle_id }: Transfer): string {
  return [reason, debit, credit, amount, currency, member_id ?? '-', pay_cycle_id ?? '-'].join(' ')
}

function wrongBalances({ transfers, balances }: Rows): string[] {
  const wanted = new Sums()
  for (const transfer of transfers) {
    const of = `${transfer.member_id} ${transfer.currency}`
    wanted.add(`${of} available`, change(transfer, { credit: 'member_available' }))
    wanted.add(`${of} owed`, change(transfer, { debit: 'member_owed' }))
  }
  const kept = new Sums()
  for (const { member_id: memberId, currency, available, owed } of balances) {
    kept.add(`${memberId} ${currency} available`, available)
    kept.add(`${memberId} ${currency} owed`, owed)
  }
  const negative = [...kept.entries()].filter(([, sum]) => sum < 0n)
  return [
    ...wanted.differences(kept).map(difference => `kept balance, member ${difference}`),
    ...negative.map(([of, sum]) => `negative: ${of} ${sum}`),
  ]
}

// One open cycle per partner, no gap between cycles, and in a closed one nothing available: what was earned there and not
// given back are exactly the withdrawals that stand in it, and what was owed across.
function wrongCycles({ cycles, transfers, withdrawals }: Rows): string[] {
  const found: string[] = []
  for (const [partner, own] of Map.groupBy(cycles, cycle => cycle.partner_id)) {
    const open = own.filter(({ status }) => status === 'Open')
    if (open.length !== 1 || own.at(-1)?.status !== 'Open') found.push(`${partner} has ${open.length} open cycles`)
    if (own.length < 2) found.push(`${partner}: no cycle was closed`)
    for (const [index, cycle] of own.entries())
      if (index > 0 && own[index - 1]?.day_after !== cycle.start_date)
        found.push(`${cycle.id} does not follow the cycle before`)
  }
  const closed = new Set(cycles.filter(({ status }) => status === 'Closed').map(({ id }) => id))
  const available = new Sums()
  const deducted = new Sums()
  const wanted = new Sums()
  for (const transfer of transfers) {
    if (!closed.has(transfer.pay_cycle_id ?? '')) continue
    const of = `${transfer.pay_cycle_id} ${transfer.member_id}`
    available.add(of, change(transfer, { credit: 'member_available' }))
    deducted.add(of, change(transfer, { debit: 'earned_pay' }))
    wanted.add(of, -change(transfer, { debit: 'member_owed' }))
  }
  for (const {
    pay_cycle_id: own,
    adjusted_in_cycle_id: adjusted,
    member_id: memberId,
    status,
    amount,
  } of withdrawals) {
    if (closed.has(own)) wanted.add(`${own} ${memberId}`, amount)
    const back = adjusted ?? own
    if (closed.has(back) && ['cancelled', 'failed', 'returned'].includes(status))
      wanted.add(`${back} ${memberId}`, -amount)
  }
  return [
    ...found,
    ...new Sums().differences(available).map(difference => `available in a closed cycle: ${difference}`),
    ...wanted.differences(deducted).map(difference => `deduction of ${difference}`),
  ]
}

// What members were paid has left the float, and nothing is on its way at rest.
function wrongTotals({ transfers, withdrawals }: Rows): string[] {
  const wanted = new Sums()
  for (const { partner_id: partner, status, net, fee, employer_fee: employerFee } of withdrawals) {
    if (status === 'paid') wanted.add(`${partner} float`, -net)
    if (status === 'held' || status === 'submitted') wanted.add(`${partner} payouts_pending`, net)
    if (['held', 'submitted', 'paid'].includes(status)) wanted.add(`${partner} fees`, fee + employerFee)
  }
  const has = new Sums()
  for (const transfer of transfers) {
    has.add(`${transfer.partner_id} float`, change(transfer, { debit: 'float' }))
    has.add(`${transfer.partner_id} payouts_pending`, change(transfer, { credit: 'payouts_pending' }))
    has.add(`${transfer.partner_id} fees`, change(transfer, { credit: 'fees' }))
  }
  return wanted.differences(has)
}

// Each step of a resource has its event, once and in order.
function wrongEvents({ events, withdrawals, intents, payRuns }: Rows): string[] {
  const eventsOf = Map.groupBy(events, event => event.resource_id)
  const wanted = [
    ...withdrawals.map(({ id, status }) => ({ id, types: (ways[status] ?? []).map(step => `withdrawal.${step}`) })),
    ...intents.map(({ id, status }) => ({
      id,
      types: ['intent.created', ...(status === 'pending' ? [] : [`intent.${status}`])],
    })),
    ...payRuns.map(({ id, status, was_available: wasAvailable }) => ({
      id,
      types: [
        'pay_run.scheduled',
        ...(wasAvailable ? ['pay_run.available'] : []),
        ...(status === 'Reverted' ? ['pay_run.reverted'] : []),
      ],
    })),
  ]
  return wanted.flatMap(({ id, types }) => {
    const has = (eventsOf.get(id) ?? []).map(({ sequence, type }) => `${sequence} ${type}`).join(', ')
    const should = types.map((type, index) => `${index + 1} ${type}`).join(', ')
    return has === should ? [] : [`the events of ${id} are ${has}, not ${should}`]
  })
}

/** What a transfer changes on an account, counted on the side that makes it more. */
function change({ debit, credit, amount }: Transfer, of: { debit: string } | { credit: string }): bigint {
  const [account, more, less] = 'debit' in of ? [of.debit, debit, credit] : [of.credit, credit, debit]
  return more === account ? amount : less === account ? -amount : 0n
}

/** Sums by name; a name that is not there is zero. */
class Sums {
  readonly #sums = new Map<string, bigint>()

  add(of: string, amount: bigint): void {
    this.#sums.set(of, (this.#sums.get(of) ?? 0n) + amount)
  }

  entries() {
    return this.#sums.entries()
  }

  differences(found: Sums): string[] {
    return [...new Set([...this.#sums.keys(), ...found.#sums.keys()])]
      .map(of => ({ of, wanted: this.#sums.get(of) ?? 0n, has: found.#sums.get(of) ?? 0n }))
      .filter(({ wanted, has }) => wanted !== has)
      .map(({ of, wanted, has }) => `${of} is ${has}, recomputed ${wanted}`)
  }
}

function firstLineOf(lines: Line[]): Map<Id, bigint> {
  const first = new Map<Id, bigint>()
  for (const { pay_run_id: payRun, amount } of lines) if (!first.has(payRun)) first.set(payRun, amount)
  return first
}

function byId<T extends { id: Id }>(rows: T[]): Map<Id, T> {
  return new Map(rows.map(row => [row.id, row]))
}

function inWords({ key, request }: Asked): string {
  return `${key}, ${effectOf(request)}`
}
