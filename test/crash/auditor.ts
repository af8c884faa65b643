import pg from 'pg'
import pino from 'pino'
import { openAccount } from '../../src/bank-accounts/sealed-account.ts'
import { connect } from '../../src/database/connect.ts'
import { openSealer } from '../../src/sealing/installation-keys.ts'
import type { Sealer } from '../../src/sealing/sealer.ts'
import { keySource } from '../harness/installation-key.ts'
import type { BankBooks } from './bank.ts'
import { amountOfFirstLine, amountOfIntent, idAt, outcomeOf, type Request, type RequestRecord } from './clients.ts'

/**
 * The errors found by the audit, one sentence each. The auditor shares no code with the service, except to open sealed
 * responses: it reads the tables with its own SQL, does its own arithmetic, and compares the result with the clients' log.
 */
export type Findings = {
  /** Acknowledged effects that are missing from the database or different there. */
  lost: string[]
  /** Keys, intents and references with more than one effect. */
  duplicated: string[]
  /** Effects in the database that were never requested. */
  ghost: string[]
  /** Ledger entries that do not match their pay runs, withdrawals and cycles. */
  books: string[]
  /** Events that the webhook endpoint has not accepted, and deliveries that were recorded but not made. */
  undelivered: string[]
  /** Bank answers that were misread, and payments and batches that are not in exactly one correct file. */
  misread: string[]
}

/**
 * @param accepted the ids of the events that the webhook endpoint has accepted
 * @param books the records of the bank that exchanges files; undefined if the simulated bank paid, whose records are in the database
 */
export async function audit(
  databaseUrl: string,
  { log, accepted, books }: { log: RequestRecord[]; accepted: ReadonlySet<string>; books: BankBooks | undefined },
): Promise<Findings> {
  const found = await read(databaseUrl)
  const rows = books === undefined ? found : { ...found, payments: paymentsOf(found, books) }
  return {
    lost: [...lostOf(rows, log), ...contradictsBank(rows)],
    duplicated: [...conflictingAnswers(log), ...duplicatedOf(rows)],
    ghost: ghostsOf(rows, log),
    books: booksOf(rows),
    undelivered: undeliveredOf(rows, accepted),
    misread: books === undefined ? [] : [...misreadOf(found, books), ...wrongBatches(found, books)],
  }
}

// Each order of each file is one execution, so a payment in two files counts twice.
function paymentsOf({ payouts }: Rows, { orders }: BankBooks): Payment[] {
  const withdrawalOf = new Map(payouts.map(payout => [payout.reference, payout.withdrawal_id]))
  return [...Map.groupBy(orders, ({ reference }) => reference)].flatMap(([reference, all]) => {
    const count = (outcomes: string[]) => all.filter(({ outcome }) => outcomes.includes(outcome)).length
    const [first] = all
    if (first === undefined) return []
    return {
      reference: withdrawalOf.get(reference) ?? reference,
      behaviour: 'files',
      amount: first.amount,
      currency: 'EUR',
      paid: count(['paid', 'returned']),
      failed: count(['failed']),
      returned: count(['returned']),
    }
  })
}

// Each false answer and each batch rejected as a whole must be one exception, and nothing else. A file must be refused exactly if
// it was truncated.
function misreadOf(
  { exceptions, bankFiles, payouts }: Rows,
  { lies, refused: batches, halves, orders }: BankBooks,
): string[] {
  const expected = new Sums()
  for (const messageId of batches) expected.add(`exceptions of kind rejected about ${messageId}`, 1n)
  for (const { kind, reference } of lies) expected.add(`exceptions of kind ${kind} about ${reference}`, 1n)
  const actual = new Sums()
  for (const { kind, reference } of exceptions) actual.add(`exceptions of kind ${kind} about ${reference}`, 1n)
  const refused = bankFiles.filter(({ status }) => status === 'rejected').map(({ name }) => name)
  const taken = Map.groupBy(orders, ({ reference }) => reference)
  return [
    ...expected.differences(actual),
    ...refused.filter(name => !halves.includes(name)).map(name => `the file ${name} was refused`),
    ...halves.filter(name => !refused.includes(name)).map(name => `the file ${name} was imported, but it is truncated`),
    ...payouts.flatMap(({ reference, iban }) => {
      const all = taken.get(reference) ?? []
      const paidTo = all.filter(order => order.iban !== iban)
      return [
        ...(all.length === 1
          ? []
          : [`payment ${reference} is in ${all.length} files: ${all.map(({ file }) => file).join(', ')}`]),
        ...paidTo.map(order => `payment ${reference} is to ${order.iban}, but the member's account is ${iban}`),
      ]
    }),
  ]
}

// Every batch was delivered once, as one file, and has ended; and the file matches the batch.
function wrongBatches({ batches }: Rows, { files, orders }: BankBooks): string[] {
  const filesOf = Map.groupBy(files, ({ messageId }) => messageId)
  const known = new Set(batches.map(({ message_id }) => message_id))
  return [
    ...files.filter(({ messageId }) => !known.has(messageId)).map(({ name }) => `the file ${name} belongs to no batch`),
    ...batches.flatMap(({ id, message_id, status, file_sha256, payment_count, control_total }) => {
      const taken = filesOf.get(message_id) ?? []
      const [file] = taken
      if (file === undefined || taken.length > 1) return [`batch ${id} is ${status}, and in ${taken.length} files`]
      const ordered = orders.filter(order => order.file === file.name)
      const sum = ordered.reduce((total, { amount }) => total + amount, 0n)
      return [
        ...(file_sha256 === file.sha256
          ? []
          : [`batch ${id} has the checksum ${file_sha256}, its file ${file.sha256}`]),
        ...(['settled', 'rejected'].includes(status) ? [] : [`batch ${id} is ${status}, though all of it is answered`]),
        ...(ordered.length === payment_count && sum === control_total
          ? []
          : [`batch ${id} has ${payment_count} payments and ${control_total}, its file ${ordered.length} and ${sum}`]),
      ]
    }),
  ]
}

function undeliveredOf({ deliveries }: Rows, accepted: ReadonlySet<string>): string[] {
  return deliveries.flatMap(({ event_id, type, state }) => [
    ...(accepted.has(event_id) ? [] : [`${type} ${event_id} was never accepted by the webhook endpoint`]),
    ...(state === 'delivered' ? [] : [`the delivery of ${type} ${event_id} is ${state ?? 'missing'}`]),
  ])
}

// bigint columns arrive as text and are parsed to bigint.
type Id = string
type PayRun = { partner_id: Id; id: Id; pay_cycle_id: Id; status: string; was_available: boolean }
type Line = { pay_run_id: Id; member_id: Id; amount: bigint; currency: string }
type Terms = {
  member_id: Id
  pay_cycle_id: Id
  status: string
  currency: string
  gross_amount: bigint
  net_amount: bigint
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
type Key = { partner_id: Id; key: string; status: number; answer: Buffer | null }
type Event = { resource_id: Id; type: string; sequence: number }
type Delivery = { event_id: Id; type: string; state: string | null }
type Payout = { reference: string; withdrawal_id: Id; iban: string | null }
type SealedPayout = Omit<Payout, 'iban'> & {
  partner_id: Id
  member_id: Id
  account: Buffer
  payment_key: Buffer | null
}
type Batch = {
  id: Id
  message_id: string
  status: string
  file_sha256: string | null
  payment_count: number
  control_total: bigint
}
type BankException = { kind: string; reference: string | null }
type BankFile = { name: string; status: string }
type Payment = {
  /** The withdrawal with the bank's reference. */
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
  const sealer = await sealerOf(databaseUrl)
  const terms = 'member_id, pay_cycle_id, status, currency, gross_amount, net_amount, fee, employer_fee'
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
      sealer,
      keys: await all<Key>('select partner_id, key, status, answer from idempotency_keys'),
      events: await all<Event>(
        `select resource_id, type, sequence from events where type ~ '^(withdrawal|intent|pay_run)[.]' order by resource_id, sequence`,
      ),
      // Every event since the endpoint was created, with its delivery, if it has one.
      deliveries: await all<Delivery>(
        `select e.id as event_id, e.type, d.state
           from events e join webhook_endpoints w on w.partner_id = e.partner_id
           left join webhook_deliveries d
             on d.partner_id = e.partner_id and d.endpoint_id = w.id and d.event_id = e.id
          where e.position is null or e.position > w.since_position order by e.id`,
      ),
      payouts: (
        await all<SealedPayout>(
          `select p.reference, p.withdrawal_id, i.partner_id, i.member_id, i.account, k.payment_key
             from payouts p join withdrawals w on w.partner_id = p.partner_id and w.id = p.withdrawal_id
             join withdrawal_intents i on i.partner_id = w.partner_id and i.id = w.withdrawal_intent_id
             join member_keys k on k.partner_id = i.partner_id and k.member_id = i.member_id order by p.reference`,
        )
      ).map(payout => opened(payout, sealer)),
      batches: await all<Batch>(
        'select id, message_id, status, file_sha256, payment_count, control_total from payout_batches order by id',
      ),
      exceptions: await all<BankException>('select kind, reference from payout_exceptions order by id'),
      bankFiles: await all<BankFile>('select name, status from bank_files order by id'),
      payments: await all<Payment>(
        `select coalesce(o.withdrawal_id, p.reference) as reference, p.behaviour, p.amount, p.currency,
                count(*) filter (where r.outcome = 'paid')::integer as paid,
                count(*) filter (where r.outcome = 'failed')::integer as failed,
                count(*) filter (where r.outcome = 'returned')::integer as returned
           from simulated_bank_payments p left join payouts o on o.reference = p.reference
           left join simulated_bank_reports r on r.reference = p.reference
          group by p.reference, p.behaviour, p.amount, p.currency, o.withdrawal_id`,
      ),
    }
  } finally {
    await client.end()
  }
}

function opened(
  { partner_id: partnerId, member_id: memberId, account, payment_key: paymentKey, ...payout }: SealedPayout,
  sealer: Sealer,
): Payout {
  const paidTo = openAccount(sealer, { account, paymentKey }, { partnerId, memberId })
  return { ...payout, iban: paidTo !== null && 'iban' in paidTo ? paidTo.iban : null }
}

async function sealerOf(databaseUrl: string) {
  const { db, close } = connect(databaseUrl, { log: pino({ level: 'silent' }), connectionsMax: 1 })
  return await openSealer(db, keySource).finally(close)
}

/** The body of a stored response, which follows the line with its headers. */
function bodyOf({ partner_id: owner, answer }: Key, { sealer }: Rows): string {
  const opened = answer === null ? '' : sealer.open(answer, { kind: 'replay', owner }).toString()
  return opened.slice(opened.indexOf('\n') + 1)
}

type Rows = Awaited<ReturnType<typeof read>>

function lostOf(rows: Rows, log: RequestRecord[]): string[] {
  const payRuns = byId(rows.payRuns)
  const intents = byId(rows.intents)
  const withdrawals = byId(rows.withdrawals)
  const linesOf = Map.groupBy(rows.lines, line => line.pay_run_id)
  const keys = new Map(rows.keys.map(row => [`${row.partner_id} ${row.key}`, row]))

  return log.flatMap(record => {
    const [answer] = record.answers
    if (answer === undefined || outcomeOf(record) !== 'acknowledged') return []
    const kept = keys.get(`${record.partnerId} ${record.key}`)
    if (kept === undefined) return [`${describe(record)}: its idempotency key is missing`]
    const body = bodyOf(kept, rows)
    if (kept.status !== answer.status || body !== answer.body)
      return [`${describe(record)}: a different response is stored: ${kept.status} ${body}`]
    const missing = missingOf(record, answer)
    return missing === undefined
      ? []
      : [`${describe(record)}: ${missing}; the response was ${answer.status} ${answer.body}`]
  })

  function missingOf(
    { request, currency }: RequestRecord,
    { body, location }: { body: string; location: string | null },
  ): string | undefined {
    switch (request.action) {
      case 'pay run': {
        const id = idAt(location)
        if (!payRuns.has(id)) return `there is no pay run ${id}`
        const found = (linesOf.get(id) ?? []).map(line => `${line.member_id} ${line.amount} ${line.currency}`).join()
        const expected = request.lines.map(line => `${line.memberId} ${line.amount} ${currency}`).join()
        return found === expected ? undefined : `pay run ${id} has the lines ${found}`
      }
      case 'revert': {
        const status = payRuns.get(request.subject)?.status
        return status === 'Reverted' ? undefined : `pay run ${request.subject} is ${status}`
      }
      case 'intent': {
        const { withdrawalIntentId, netAmount, fee } = JSON.parse(body)
        const intent = intents.get(withdrawalIntentId)
        if (intent === undefined) return `there is no intent ${withdrawalIntentId}`
        const found = [intent.member_id, intent.gross_amount, intent.net_amount, intent.fee].join()
        const expected = [request.memberId, request.amount, netAmount.amount, fee.amount].join()
        return found === expected ? undefined : `intent ${withdrawalIntentId} is ${found}`
      }
      case 'complete': {
        const withdrawal = withdrawals.get(idAt(location))
        if (withdrawal === undefined) return `there is no withdrawal ${location}`
        if (withdrawal.withdrawal_intent_id !== request.subject) return `${location} belongs to another intent`
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

// The final status of a withdrawal must match the bank's outcome.
function contradictsBank({ withdrawals, payments }: Rows): string[] {
  const paymentOf = new Map(payments.map(payment => [payment.reference, payment]))
  return withdrawals.flatMap(({ id, status }) => {
    const payment = paymentOf.get(id)
    const possible =
      payment === undefined || payment.paid + payment.failed === 0
        ? ['held', 'cancelled', 'submitted']
        : [payment.returned > 0 ? 'returned' : payment.paid > 0 ? 'paid' : 'failed']
    return possible.includes(status)
      ? []
      : [`withdrawal ${id} is ${status}, but at the bank it is ${possible.join(' or ')}`]
  })
}

function conflictingAnswers(log: RequestRecord[]): string[] {
  return log.flatMap(record => {
    const different = new Set(record.answers.map(({ status, body, location }) => `${status} ${location ?? ''} ${body}`))
    return different.size <= 1 ? [] : [`${describe(record)}: got different responses: ${[...different].join(' and ')}`]
  })
}

function duplicatedOf({ payRuns, lines, intents, withdrawals, payments }: Rows): string[] {
  const firstLines = firstLineOf(lines)
  // Amounts encode serial numbers, so two effects with the same amount come from the same request.
  const duplicatePayRuns = duplicates(
    payRuns,
    ({ partner_id, id }) => `${partner_id}, first line ${firstLines.get(id)}`,
  )
  const duplicateIntents = duplicates(
    intents,
    ({ partner_id, gross_amount: amount }) => `${partner_id}, amount ${amount}`,
  )
  const duplicateWithdrawals = duplicates(withdrawals, ({ withdrawal_intent_id: intent }) => `intent ${intent}`)
  // The bank behind this account sends every report twice.
  const paidTwice = payments.filter(
    ({ paid, failed, returned, behaviour }) => paid > (behaviour === 'twice' ? 2 : 1) || failed > 1 || returned > 1,
  )
  return [
    ...duplicatePayRuns.map(of => `pay runs of one request: ${of}`),
    ...duplicateIntents.map(of => `intents of one request: ${of}`),
    ...duplicateWithdrawals.map(of => `withdrawals of one intent: ${of}`),
    ...paidTwice.map(({ reference, paid }) => `payment ${reference} was executed ${paid} times`),
  ]
}

function duplicates<T extends { id: Id }>(all: T[], of: (each: T) => string): string[] {
  return [...Map.groupBy(all, of)]
    .filter(([, same]) => same.length > 1)
    .map(([what, same]) => `${what}: ${same.map(({ id }) => id).join(', ')}`)
}

function ghostsOf(rows: Rows, log: RequestRecord[]): string[] {
  // A refused request must have no effect; any other request may have one.
  const mayHaveEffect = log.filter(record => outcomeOf(record) !== 'refused')
  const explained = new Set(mayHaveEffect.map(({ partnerId, request }) => `${partnerId} ${effectOf(request)}`))
  const firstLines = firstLineOf(rows.lines)
  const effects = [
    ...rows.payRuns.map(({ partner_id, id }) => ({ of: id, effect: `${partner_id} pay run of ${firstLines.get(id)}` })),
    ...rows.payRuns
      .filter(({ status }) => status === 'Reverted')
      .map(({ partner_id, id }) => ({ of: id, effect: `${partner_id} revert of ${id}` })),
    ...rows.intents.map(({ partner_id, id, gross_amount: amount }) => ({
      of: id,
      effect: `${partner_id} intent of ${amount}`,
    })),
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
  const knownKeys = new Set(mayHaveEffect.map(({ partnerId, key }) => `${partnerId} ${key}`))
  const withdrawals = byId(rows.withdrawals)
  return [
    ...effects
      .filter(({ effect }) => !explained.has(effect))
      .map(({ of, effect }) => `${of}: no request for ${effect}`),
    ...rows.keys
      .filter(({ partner_id, key }) => !knownKeys.has(`${partner_id} ${key}`))
      .map(
        ({ key, status }) => `key ${key} is stored with status ${status}, but its request was refused or never made`,
      ),
    ...rows.payments.flatMap(({ reference, amount }) => {
      const withdrawal = withdrawals.get(reference)
      if (withdrawal === undefined) return [`the bank has a payment ${reference} without a withdrawal`]
      if (withdrawal.net_amount !== amount)
        return [`the bank has ${amount} for ${reference}, but its net amount is ${withdrawal.net_amount}`]
      const { status } = withdrawal
      return ['held', 'cancelled'].includes(status)
        ? [`the bank has a payment ${reference}, but the withdrawal is ${status}`]
        : []
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

const statusPaths: Record<string, string[]> = {
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

// Every transfer must follow from a withdrawal, pay run or cycle, and each of these must have all of its transfers.
function wrongBookings({ payRuns, lines, intents, withdrawals, transfers, cycles }: Rows): string[] {
  const booked = Map.groupBy(transfers, transfer => transfer.movement_id)
  const intentOf = byId(intents)
  const linesOf = Map.groupBy(lines, line => line.pay_run_id)
  const found: string[] = []

  for (const withdrawal of withdrawals) {
    const intent = intentOf.get(withdrawal.withdrawal_intent_id)
    const terms = (of: Terms | undefined) =>
      of && [of.member_id, of.pay_cycle_id, of.currency, of.gross_amount, of.net_amount, of.fee, of.employer_fee].join()
    if (terms(withdrawal) !== terms(intent)) found.push(`withdrawal ${withdrawal.id} differs from its intent`)
    if (withdrawal.gross_amount !== withdrawal.net_amount + withdrawal.fee)
      found.push(`${withdrawal.id}: gross amount is not net amount plus fee`)
    const expected = bookingsOf(withdrawal).toSorted().join('; ')
    const actual = (booked.get(withdrawal.id) ?? []).map(booking).toSorted().join('; ')
    if (expected !== actual)
      found.push(`withdrawal ${withdrawal.id} is ${withdrawal.status} and booked ${actual}, not ${expected}`)
  }
  for (const { id, status, was_available: wasAvailable } of payRuns) {
    const isBooked = (step: string) => wasAvailable && (step === 'pay_run.available' || status === 'Reverted')
    for (const [reason, sign] of [
      ['pay_run.available', 1n],
      ['pay_run.reverted', -1n],
    ] as const) {
      const expected = new Sums()
      if (isBooked(reason)) for (const line of linesOf.get(id) ?? []) expected.add(line.member_id, sign * line.amount)
      const actual = new Sums()
      for (const transfer of booked.get(id) ?? [])
        if (transfer.reason === reason)
          actual.add(transfer.member_id ?? 'no member', change(transfer, { debit: 'earned_pay' }))
      for (const difference of expected.differences(actual))
        found.push(`pay run ${id} (${status}), ${reason}: ${difference}`)
    }
  }
  const movements = new Set([...withdrawals, ...payRuns, ...cycles].map(({ id }) => id))
  for (const id of booked.keys())
    if (!movements.has(id)) found.push(`there are transfers of ${id}, which does not exist`)
  return found
}

function bookingsOf(withdrawal: Withdrawal): string[] {
  const {
    net_amount: net,
    fee,
    employer_fee: employerFee,
    pay_cycle_id: own,
    adjusted_in_cycle_id: adjusted,
  } = withdrawal
  return (statusPaths[withdrawal.status] ?? []).flatMap(step => {
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
  const expected = new Sums()
  for (const transfer of transfers) {
    const of = `${transfer.member_id} ${transfer.currency}`
    expected.add(`${of} available`, change(transfer, { credit: 'member_available' }))
    expected.add(`${of} owed`, change(transfer, { debit: 'member_owed' }))
  }
  const kept = new Sums()
  for (const { member_id: memberId, currency, available, owed } of balances) {
    kept.add(`${memberId} ${currency} available`, available)
    kept.add(`${memberId} ${currency} owed`, owed)
  }
  const negative = [...kept.entries()].filter(([, sum]) => sum < 0n)
  return [
    ...expected.differences(kept).map(difference => `stored balance, member ${difference}`),
    ...negative.map(([of, sum]) => `negative: ${of} ${sum}`),
  ]
}

// A partner has one open cycle and no gap between cycles. A closed cycle has no available balances, and its deductions equal
// the withdrawals that were not reversed in it, plus the carried-over debts.
function wrongCycles({ cycles, transfers, withdrawals }: Rows): string[] {
  const found: string[] = []
  for (const [partner, own] of Map.groupBy(cycles, cycle => cycle.partner_id)) {
    const open = own.filter(({ status }) => status === 'Open')
    if (open.length !== 1 || own.at(-1)?.status !== 'Open') found.push(`${partner} has ${open.length} open cycles`)
    if (own.length < 2) found.push(`${partner}: no cycle has closed`)
    for (const [index, cycle] of own.entries())
      if (index > 0 && own[index - 1]?.day_after !== cycle.start_date)
        found.push(`${cycle.id} does not start after the previous cycle`)
  }
  const closed = new Set(cycles.filter(({ status }) => status === 'Closed').map(({ id }) => id))
  const available = new Sums()
  const deducted = new Sums()
  const expected = new Sums()
  for (const transfer of transfers) {
    if (!closed.has(transfer.pay_cycle_id ?? '')) continue
    const of = `${transfer.pay_cycle_id} ${transfer.member_id}`
    available.add(of, change(transfer, { credit: 'member_available' }))
    deducted.add(of, change(transfer, { debit: 'earned_pay' }))
    expected.add(of, -change(transfer, { debit: 'member_owed' }))
  }
  for (const {
    pay_cycle_id: own,
    adjusted_in_cycle_id: adjusted,
    member_id: memberId,
    status,
    gross_amount: grossAmount,
  } of withdrawals) {
    if (closed.has(own)) expected.add(`${own} ${memberId}`, grossAmount)
    const back = adjusted ?? own
    if (closed.has(back) && ['cancelled', 'failed', 'returned'].includes(status))
      expected.add(`${back} ${memberId}`, -grossAmount)
  }
  return [
    ...found,
    ...new Sums().differences(available).map(difference => `available in a closed cycle: ${difference}`),
    ...expected.differences(deducted).map(difference => `deduction of ${difference}`),
  ]
}

// Paid amounts have left the float, and pending payouts match the withdrawals that are held or submitted.
function wrongTotals({ transfers, withdrawals }: Rows): string[] {
  const expected = new Sums()
  for (const { partner_id: partner, status, net_amount: net, fee, employer_fee: employerFee } of withdrawals) {
    if (status === 'paid') expected.add(`${partner} float`, -net)
    if (status === 'held' || status === 'submitted') expected.add(`${partner} payouts_pending`, net)
    if (['held', 'submitted', 'paid'].includes(status)) expected.add(`${partner} fees`, fee + employerFee)
  }
  const actual = new Sums()
  for (const transfer of transfers) {
    actual.add(`${transfer.partner_id} float`, change(transfer, { debit: 'float' }))
    actual.add(`${transfer.partner_id} payouts_pending`, change(transfer, { credit: 'payouts_pending' }))
    actual.add(`${transfer.partner_id} fees`, change(transfer, { credit: 'fees' }))
  }
  return expected.differences(actual)
}

// Each status change of a resource has exactly one event, in order.
function wrongEvents({ events, withdrawals, intents, payRuns }: Rows): string[] {
  const eventsOf = Map.groupBy(events, event => event.resource_id)
  const expected = [
    ...withdrawals.map(({ id, status }) => ({
      id,
      types: (statusPaths[status] ?? []).map(step => `withdrawal.${step}`),
    })),
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
  return expected.flatMap(({ id, types }) => {
    const actual = (eventsOf.get(id) ?? []).map(({ sequence, type }) => `${sequence} ${type}`).join(', ')
    const should = types.map((type, index) => `${index + 1} ${type}`).join(', ')
    return actual === should ? [] : [`the events of ${id} are ${actual}, not ${should}`]
  })
}

/** The change that a transfer makes to an account, positive on the given side. */
function change({ debit, credit, amount }: Transfer, of: { debit: string } | { credit: string }): bigint {
  const [account, more, less] = 'debit' in of ? [of.debit, debit, credit] : [of.credit, credit, debit]
  return more === account ? amount : less === account ? -amount : 0n
}

/** Sums by name. A missing name counts as zero. */
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
      .map(of => ({ of, expected: this.#sums.get(of) ?? 0n, actual: found.#sums.get(of) ?? 0n }))
      .filter(({ expected, actual }) => expected !== actual)
      .map(({ of, expected, actual }) => `${of} is ${actual}, recomputed ${expected}`)
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

function describe({ key, request }: RequestRecord): string {
  return `${key}, ${effectOf(request)}`
}
