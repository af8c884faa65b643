import assert from 'node:assert/strict'
import pg from 'pg'
import pino from 'pino'
import { sql, type Tx } from '../../src/database/database.ts'
import * as float from '../../src/float/float.ts'
import { release } from '../../src/members/restrictions.ts'
import { approve } from '../../src/payouts/books/approvals.ts'
import type { Decision as ClosingDecision } from '../../src/payouts/books/decisions.ts'
import { decide, decideOutcomeOfTwo } from '../../src/payouts/books/decisions-of-two.ts'
import type { FileRailSettings } from '../../src/payouts/books/file-rail-settings.ts'
import type { OutcomeByHand } from '../../src/payouts/books/outcomes.ts'
import { remove, setHeld } from '../../src/payouts/books/unsent-batches.ts'
import { cutOffOf, leadTimes } from '../../src/payouts/calendars/cut-off.ts'
import { uk } from '../../src/payouts/calendars/uk.ts'
import { fileChannel } from '../../src/payouts/channels/files/channel.ts'
import { type Delivery, NotDelivered } from '../../src/payouts/delivery/delivery.ts'
import { sepaFormat } from '../../src/payouts/formats/sepa/format.ts'
import { stateWithoutAdvice } from '../../src/payouts/formats/standard18/entry-day.ts'
import { standard18Format } from '../../src/payouts/formats/standard18/format.ts'
import { payoutTasks } from '../../src/payouts/tasks.ts'
import { verify } from '../../src/verification/verify.ts'
import { euroRail, FileBank, ownIban } from '../banks/file-bank.ts'
import {
  accountReport,
  type Entry,
  inDecimals,
  readCreditTransfer,
  statusReport,
  transaction,
  wholeBatch,
} from '../banks/iso20022.ts'
import { locatedId } from '../harness/api-response.ts'
import { type Harness, startHarness } from '../harness/harness.ts'
import { euAccount, goodAccount } from '../harness/samples.ts'
import { closeException } from '../payouts/two-person-decisions.ts'
import {
  type BankFile,
  type Decision,
  limits,
  members,
  ofMember,
  partners,
  type RailName,
  type SendFault,
  type Statement,
  type Step,
  strangers,
} from './bank-files-model.ts'
import { installKiller, type Killer } from './killer.ts'
import { type Snapshot, takeSnapshot } from './snapshot.ts'

/** The accounts from which the pounds rail pays. */
export const ukAccounts = { default: '55779911', own: '11223344' }
export const ibans = { default: ownIban, own: 'DE02120300000000202051', other: 'DE89370400440532013000' }
const currencies = { euros: 'EUR', pounds: 'GBP' } as const
// The tiers take a fee from the member.
const fee = 50n
export const floatAtStart = 1_000_000_000n

/** The result of one person's decision. */
export type Decided = 'closed' | 'decided' | 'proposed' | 'repeated' | 'refused'

type Known = {
  harness: Harness
  snapshot: Snapshot
  tasks: ReturnType<typeof payoutTasks>
  banks: Record<RailName, FileBank>
  setFault: (fault: SendFault) => void
  killer: Killer
  /** Names of partners and members, and their ids. */
  ids: ReadonlyMap<string, string>
  keys: ReadonlyMap<string, string>
}

/** The program with two file rails on a real database, driven in terms of the model. */
export class BankFilesProgram {
  readonly #of: Known
  #ids = new Map<string, string>()
  #names = new Map<string, string>()
  #withdrawals = 0
  #files = 0
  /** The creation time of each bank message, so that repeated messages have the same bytes. */
  readonly #madeAt = new Map<string, Date>()

  static async start(startAt: Date, { available = 100_000_000 } = {}): Promise<BankFilesProgram> {
    const harness = await startHarness({ bankOf: () => 'connected', startAt })
    const { db, clock } = harness
    const ids = new Map<string, string>()
    const keys = new Map<string, string>()
    const all = [{ partner: harness.partner, key: harness.key }, harness.other, await harness.addPartner('Third')]
    for (const [index, name] of partners.entries()) {
      const { partner, key } = known(all[index])
      ids.set(name, partner.id)
      keys.set(name, key)
      const amount = { amount: floatAtStart, currency: 'EUR' } as const
      await db.transaction().execute(tx => float.fund(tx, { partnerId: partner.id, amount, now: startAt }))
    }
    for (const name of members) {
      const { partner, rail } = ofMember(name)
      const terms =
        rail === 'euros'
          ? ({ tier: 'Silver EU', account: euAccount, currency: 'EUR' } as const)
          : ({ tier: 'Silver', account: goodAccount, currency: 'GBP' } as const)
      ids.set(name, await harness.addMember({ available, key: known(keys.get(partner)), ...terms }))
    }
    const banks = { euros: new FileBank(), pounds: new FileBank() }
    let fault: SendFault = 'none'
    const settings = settingsOf({
      ownDebtor: known(ids.get('p2')),
      deliveryOf: rail => withFault(banks[rail], () => fault),
    })
    const tasks = payoutTasks(settings.map(each => fileChannel({ db, now: clock.now, settings: each })))
    const setFault = (to: SendFault) => {
      fault = to
    }
    const snapshot = await takeSnapshot(harness)
    const killer = await installKiller(harness)
    return new BankFilesProgram({ harness, snapshot, tasks, banks, setFault, killer, ids, keys })
  }

  private constructor(of: Known) {
    this.#of = of
  }

  set now(to: Date) {
    this.#of.harness.clock.set(to)
  }

  /** Restores the initial state. */
  async reset(): Promise<void> {
    const { snapshot, banks, ids } = this.#of
    await snapshot.restore()
    this.#madeAt.clear()
    for (const { outbox, inbox, rejected } of Object.values(banks))
      for (const each of [outbox, inbox, rejected]) each.clear()
    this.#ids = new Map([...ids, ['stranger', strangers.payment], ['strange batch', strangers.batch]])
    this.#names = new Map([...this.#ids].map(([name, id]) => [id, name]))
    this.#withdrawals = 0
  }

  async stop(): Promise<void> {
    await this.#of.snapshot.stop()
    await this.#of.killer.stop()
    await this.#of.harness.stop()
  }

  /** Reads the tables, bypassing the program. */
  async select<T>(query: string): Promise<T[]> {
    const { rows } = await this.#of.harness.pool.query(query)
    return rows as T[]
  }

  /** Approves a batch by its database id, for a person. */
  async approve(batchId: string, person: string): Promise<'ok' | 'refused'> {
    const now = this.#of.harness.clock.now()
    return await this.#inTx(tx => approve(tx, { batchId, person, now }))
  }

  /** Decides about an exception like an operator: a decision that takes two people is first proposed. */
  async decide(exceptionId: string, decided: ClosingDecision, person: string): Promise<Decided> {
    const now = this.#of.harness.clock.now()
    return await this.#ifAllowed(tx => decide(tx, { exceptionId, by: { person }, note: 'decided', now, ...decided }))
  }

  /** Records the outcome of a payment like an operator. */
  async decideOutcome(payment: string, decided: OutcomeByHand, person: string): Promise<Decided> {
    const now = this.#of.harness.clock.now()
    return await this.#ifAllowed(tx =>
      decideOutcomeOfTwo(tx, { payment, by: { person }, note: 'portal', now, ...decided }),
    )
  }

  async #ifAllowed(work: (tx: Tx) => Promise<{ done: Exclude<Decided, 'refused'> }>): Promise<Decided> {
    let done: Decided = 'refused'
    await this.#inTx(async tx => {
      done = (await work(tx)).done
    })
    return done
  }

  /** Creates an intent, and completes it during other work. */
  async withdrawBeside(member: string, net: bigint, work: () => Promise<void>): Promise<'ok' | 'refused'> {
    return await this.#withdraw({ member, net }, work)
  }

  /** The id of a batch of the model. */
  idOf(name: string): string {
    return known(this.#ids.get(name))
  }

  async perform(step: Step): Promise<'ok' | 'refused'> {
    const { harness } = this.#of
    const now = harness.clock.now()
    const inTx = (work: (tx: Tx) => Promise<unknown>) => this.#inTx(work)
    switch (step.do) {
      case 'withdraw':
        return await this.#withdraw(step)
      case 'release': {
        const partnerId = this.idOf(ofMember(step.member).partner)
        return await inTx(tx => release(tx, { partnerId, memberId: this.idOf(step.member) }))
      }
      case 'submit':
        await this.#run('submit-withdrawals')
        await this.#nameBatches()
        return 'ok'
      case 'send':
        return await this.#send(step.fault)
      case 'approve':
        return await inTx(tx => approve(tx, { batchId: this.idOf(step.batch), person: step.person, now }))
      case 'hold':
      case 'let go':
        return await inTx(tx => setHeld(tx, { batchId: this.idOf(step.batch), held: step.do === 'hold' }))
      case 'remove':
        return await inTx(tx => remove(tx, { payment: this.idOf(step.withdrawal), reason: 'Taken out', now }))
      case 'import':
        return await this.#import(step.file)
      case 'read reports':
        await this.#run('read-rail-reports')
        return 'ok'
      case 'poll':
        await this.#run('ask-about-withdrawals')
        return 'ok'
      case 'decide': {
        const exceptionId = (await this.#exceptions()).find(
          each => each.key === step.exception && each.decision === null,
        )?.id
        if (exceptionId === undefined) return 'refused'
        const by = { exceptionId, person: 'Ada', note: 'decided', now }
        return await inTx(tx => closeException(tx, { ...by, ...this.#decision(step.by) }))
      }
      case 'fund': {
        const { partner, rail, amount, reference } = step
        const money = { amount: amount < 0n ? -amount : amount, currency: currencies[rail] }
        const move = amount < 0n ? float.withdraw : float.fund
        return await inTx(tx => move(tx, { partnerId: this.idOf(partner), amount: money, reference, now }))
      }
      default:
        return step satisfies never
    }
  }

  async #inTx(work: (tx: Tx) => Promise<unknown>): Promise<'ok' | 'refused'> {
    try {
      await this.#of.harness.db.transaction().execute(work)
      return 'ok'
    } catch (error) {
      // A refused decision is an error for the operator; a database error is a fault.
      if (!(error instanceof Error) || error instanceof pg.DatabaseError) throw error
      return 'refused'
    }
  }

  #decision(by: Decision) {
    switch (by.decision) {
      case 'attach':
        return { decision: by.decision, reference: this.#referenceOf(by.to) }
      case 'book': {
        const partnerId = this.idOf(by.partner)
        return { decision: by.decision, partnerId, ...(by.reference === null ? {} : { reference: by.reference }) }
      }
      default:
        return { decision: by.decision }
    }
  }

  async #withdraw(
    { member, net }: { member: string; net: bigint },
    beside = async () => {},
  ): Promise<'ok' | 'refused'> {
    const { partner, rail } = ofMember(member)
    const key = known(this.#of.keys.get(partner))
    const amount = { amount: Number(net + fee), currency: currencies[rail] }
    const body = { memberId: this.idOf(member), amount }
    const intent = await this.#of.harness.call('POST', '/v1/pay/withdrawals/intent', { key, body })
    if (intent.status !== 201) {
      await beside()
      return 'refused'
    }
    const { withdrawalIntentId } = intent.body
    const [completed] = await Promise.all([
      this.#of.harness.call('POST', '/v1/pay/withdrawals/complete', { key, body: { withdrawalIntentId } }),
      beside(),
    ])
    // A recovery has taken the available balance.
    if (completed.status >= 400 && completed.status < 500) return 'refused'
    this.#name(`w${this.#withdrawals++}`, locatedId(completed))
    return 'ok'
  }

  async #run(task: keyof ReturnType<typeof payoutTasks>): Promise<void> {
    const { harness, tasks } = this.#of
    await tasks[task]({ db: harness.db, log: pino({ level: 'silent' }), now: harness.clock.now })
  }

  async #send(fault: SendFault): Promise<'ok'> {
    this.#of.setFault(fault)
    // A fault fails the task, if there is a batch to send.
    await this.#run('send-payout-batches').catch(error => {
      if (fault === 'none') throw error
    })
    this.#of.setFault('none')
    return 'ok'
  }

  #name(name: string, id: string): void {
    this.#ids.set(name, id)
    this.#names.set(id, name)
  }

  /** Names references and batches after the withdrawals, in their order. */
  async #nameBatches(): Promise<void> {
    const { rows } = await sql<{
      withdrawalId: string
      reference: string
      batchId: string | null
      messageId: string | null
    }>`
      select p.withdrawal_id, p.reference, p.batch_id, b.message_id
        from payouts p left join payout_batches b on b.id = p.batch_id`.execute(this.#of.harness.db)
    const number = ({ withdrawalId }: { withdrawalId: string }) => Number(known(this.#names.get(withdrawalId)).slice(1))
    for (const row of rows.sort((a, b) => number(a) - number(b))) {
      this.#names.set(row.reference, known(this.#names.get(row.withdrawalId)))
      this.#ids.set(`reference of w${number(row)}`, row.reference)
      if (row.batchId === null || row.messageId === null || this.#names.has(row.batchId)) continue
      const count = [...this.#ids.keys()].filter(name => /^b\d+$/.test(name)).length
      this.#name(`b${count}`, row.batchId)
      this.#names.set(row.messageId, `b${count}`)
      this.#ids.set(`message of b${count}`, row.messageId)
    }
  }

  #referenceOf(withdrawal: string): string {
    return this.#ids.get(`reference of ${withdrawal}`) ?? strangers.payment
  }

  #messageOf(batch: string): string {
    return this.#ids.get(`message of ${batch}`) ?? strangers.batch
  }

  /** Returns the observable state, under the names of the model. */
  async state(): Promise<Map<string, string>> {
    const { db } = this.#of.harness
    const seen = new Map<string, string>()
    const named = (id: string) => known(this.#names.get(id))
    const words = (...all: (string | bigint | number | null)[]) => all.filter(word => word !== null).join(' ')
    const withdrawals = await sql<{
      id: string
      status: string
      batchId: string | null
      day: string | null
      outcome: string | null
      isRemoved: boolean
    }>`
      select w.id, w.status, p.batch_id, p.outcome, p.removed_at is not null as is_removed,
             (p.expected_at at time zone case p.rail when 'euros' then 'Europe/Berlin' else 'Europe/London' end)::date::text as day
        from withdrawals w left join payouts p on p.partner_id = w.partner_id and p.withdrawal_id = w.id`.execute(db)
    for (const { id, status, batchId, day, outcome, isRemoved } of withdrawals.rows) {
      const place = batchId === null ? 'no batch' : `${named(batchId)} ${day}`
      seen.set(`withdrawal ${named(id)}`, words(status, place, outcome ?? 'open', isRemoved ? 'removed' : null))
    }
    const batches = await sql<{
      id: string
      rail: string
      debtor: string
      valueDate: string
      status: string
      held: boolean
      paymentCount: number
      controlTotal: bigint
    }>`
      select id, rail, debtor, value_date, status, held, payment_count, control_total from payout_batches`.execute(db)
    for (const { id, rail, debtor, valueDate, status, held, paymentCount, controlTotal } of batches.rows) {
      const of = debtor === 'default' ? debtor : 'own'
      const line = words(rail, of, valueDate, status, held ? 'held' : null, paymentCount, controlTotal)
      seen.set(`batch ${named(id)}`, line)
    }
    for (const { key, decision } of await this.#exceptions()) {
      const name = `exception ${key} ${decision ?? 'open'}`
      seen.set(name, `${Number(seen.get(name) ?? 0) + 1}`)
    }
    const restricted = await sql<{ id: string; account: boolean; review: boolean }>`
      select id, account_refused is not null as account, review_reason is not null as review from members
       where account_refused is not null or review_reason is not null`.execute(db)
    for (const { id, account, review } of restricted.rows)
      seen.set(`member ${named(id)}`, words(account ? 'account' : null, review ? 'review' : null))
    for (const { partnerId, currency, float: amount } of await float.listAll(db)) {
      const [rail, atStart] = currency === 'EUR' ? ['euros', floatAtStart] : (['pounds', 0n] as const)
      if (amount !== atStart) seen.set(`float ${named(partnerId)} ${rail}`, `${amount - atStart}`)
    }
    return seen
  }

  async #exceptions(): Promise<{ id: string; key: string; decision: string | null }[]> {
    const { rows } = await sql<{
      id: string
      rail: string
      kind: string
      reference: string | null
      outcome: string | null
      amount: bigint | null
      reasonCode: string | null
      decision: string | null
    }>`
      select id, rail, kind, reference, outcome, amount, reason_code, decision from payout_exceptions order by id`.execute(
      this.#of.harness.db,
    )
    return rows.map(({ id, rail, kind, reference, outcome, amount, reasonCode, decision }) => {
      const about = reference === null ? null : (this.#names.get(reference) ?? reference)
      return { id, key: [rail, kind, about, outcome, amount, reasonCode].map(word => word ?? '-').join(' '), decision }
    })
  }

  /** The payments ordered in all files, by withdrawal and amount. */
  orders(): string[] {
    const { euros, pounds } = this.#of.banks
    const all = [
      ...[...euros.outbox].flatMap(([name, text]) => readCreditTransfer(text, name).orders),
      ...[...pounds.outbox.values()].flatMap(text => readStandard18(text)),
    ]
    return all.map(({ reference, amount }) => `${known(this.#names.get(reference))} ${amount}`).sort()
  }

  async disagreements(): Promise<string[]> {
    return (await verify(this.#of.harness.db)).flatMap(({ name, disagreement }) =>
      disagreement === null ? [] : [`${name}: ${JSON.stringify(disagreement)}`],
    )
  }

  async #import(file: BankFile): Promise<'ok' | 'refused'> {
    return await this.importText(file.rail, this.#textOf(file))
  }

  /** Imports a file of a rail's bank, and continues interrupted imports. */
  async importText(rail: RailName, text: string): Promise<'ok' | 'refused'> {
    const bank = this.#of.banks[rail]
    const name = `file-${++this.#files}`
    bank.inbox.set(name, text)
    await this.#run('read-bank-files')
    assert.equal(bank.inbox.size, 0)
    return bank.rejected.has(name) ? 'refused' : 'ok'
  }

  /** Imports a file, but the process is killed before it has kept all records. @returns whether it was killed before the end */
  async killImport(rail: RailName, text: string, { records }: { records: number }): Promise<boolean> {
    const bank = this.#of.banks[rail]
    bank.inbox.set(`file-${++this.#files}`, text)
    await this.#of.killer.arm(records)
    let isKilled = false
    await this.#run('read-bank-files').catch(() => {
      isKilled = true
    })
    await this.#of.killer.disarm()
    return isKilled
  }

  /** The files received by a bank, by name. */
  receivedBy(rail: RailName): ReadonlyMap<string, string> {
    return this.#of.banks[rail].outbox
  }

  #textOf(file: BankFile): string {
    const text = this.#wholeTextOf(file)
    const { form, fault, copy } = file
    // The last row or element is truncated.
    if (fault === 'half') return text.slice(0, form === 'arucs' ? -3 : -15)
    return copy === 0 ? text : `${text}${form === 'arucs' ? '\r\n'.repeat(copy) : `<!-- ${copy} -->`}`
  }

  #wholeTextOf({ rail, form, message: id, debtor, statements, fault }: BankFile): string {
    const key = `${rail} ${id}`
    const at = this.#madeAt.get(key) ?? this.#of.harness.clock.now()
    this.#madeAt.set(key, at)
    const message = { id, at }
    if (form === 'arucs') {
      const rows = statements.flatMap(each =>
        each.says === 'entry' ? [`${this.#referenceOf(each.of)},${inDecimals(each.amount)},${each.code}`] : [],
      )
      return ['Reference,Amount,Code', ...rows].map(row => `${row}\r\n`).join('')
    }
    if (form === 'pain.002') {
      const of = (code: string | null) => (code === null ? {} : { reason: code })
      const batch = statements.find(each => each.says === 'batch')
      const payments = statements.flatMap(each =>
        each.says === 'status'
          ? [{ reference: this.#referenceOf(each.of), status: each.status, ...of(each.code) }]
          : [],
      )
      const group = batch === undefined ? {} : { status: batch.status, ...of(batch.code) }
      return statusReport(message, { messageId: this.#messageOf(batch?.of ?? ''), ...group }, payments)
    }
    // The payments of such a file are in the rail's currency, but none of them may count.
    const currencyOf = ({ says }: Statement) =>
      fault === 'other currency' && says === 'money' ? 'SEK' : currencies[rail]
    const entries = statements.flatMap(each =>
      this.#entryOf(each).map(entry => ({ ...entry, currency: currencyOf(each) })),
    )
    return accountReport(message, { kind: form, iban: ibans[fault === 'other account' ? 'other' : debtor], entries })
  }

  #entryOf(statement: Statement): Entry[] {
    switch (statement.says) {
      case 'entry': {
        const { of, isReturn, amount, code, bank, bookedOn } = statement
        const reference = this.#referenceOf(of)
        const returned = isReturn ? { returned: { reason: code ?? undefined } } : {}
        const details = transaction({ reference, ...returned })
        return [{ bookedOn, bank, amount, direction: isReturn ? 'CRDT' : 'DBIT', details }]
      }
      case 'whole batch': {
        const { of, amount, bank, bookedOn } = statement
        return [{ bookedOn, bank, amount, direction: 'DBIT', details: wholeBatch(this.#messageOf(of)) }]
      }
      case 'money': {
        const { amount, reference, bank, bookedOn } = statement
        const details = reference === null ? '' : transaction({ reference })
        const [units, direction] = amount < 0n ? ([-amount, 'DBIT'] as const) : ([amount, 'CRDT'] as const)
        return [{ bookedOn, bank, amount: units, direction, details }]
      }
      default:
        return []
    }
  }
}

function settingsOf({
  ownDebtor,
  deliveryOf,
}: {
  ownDebtor: string
  deliveryOf: (rail: RailName) => Delivery
}): FileRailSettings[] {
  const ofPounds = (name: string, accountNumber: string) => ({
    ...{ name, account: { accountHolder: name, sortCode: '200000', accountNumber } },
  })
  const timeZone = 'Europe/London'
  return [
    euroRail({
      ...{ name: 'euros', format: sepaFormat(), automatic: limits, delivery: async () => deliveryOf('euros') },
      debtors: {
        default: { name: 'Acme', account: { accountHolder: 'Acme', iban: ibans.default } },
        [ownDebtor]: { name: 'Own', account: { accountHolder: 'Own', iban: ibans.own } },
      },
    }),
    euroRail({
      ...{ name: 'pounds', currency: 'GBP', automatic: limits, delivery: async () => deliveryOf('pounds') },
      format: standard18Format(
        { scheme: 'bacs', serviceUserNumber: '123456' },
        { format: 'csv', columns: { reference: 'Reference', amount: 'Amount', reasonCode: 'Code' } },
      ),
      debtors: { default: ofPounds('Acme', ukAccounts.default), [ownDebtor]: ofPounds('Own', ukAccounts.own) },
      ...{ timeZone, calendar: uk },
      schedule: now => cutOffOf({ now, cutOff: '15:00', timeZone, calendar: uk, ...leadTimes.bacs }),
      countsAsPaid: (valueDate, today) => stateWithoutAdvice('bacs', valueDate, { today, calendar: uk }) === 'paid',
    }),
  ]
}

/** A bank whose deliveries fail on demand. */
function withFault(bank: FileBank, faultOf: () => SendFault): Delivery {
  return {
    async put(name, bytes) {
      const fault = faultOf()
      if (fault === 'not delivered') throw new NotDelivered('The disk is full')
      if (fault === 'killed before delivery') throw new Error('killed')
      const delivered = await bank.put(name, bytes)
      if (fault === 'killed after delivery') throw new Error('killed')
      return delivered
    },
    list: () => bank.list(),
    get: name => bank.get(name),
    archive: name => bank.archive(name),
    reject: (name, report) => bank.reject(name, report),
  }
}

/** The credits of a file of Standard 18: the paying account in columns 24 to 31, the amount in 36 to 46, the reference in 65 to 82. */
export function readStandard18(text: string): { account: string; reference: string; amount: bigint }[] {
  return [...text.matchAll(/^[0-9]{14}.{9}([0-9]{8}).{4}([0-9]{11}).{18}(MM[A-Z2-7]{14})/gm)].map(
    ([, account = '', amount = '', reference = '']) => ({ account, reference, amount: BigInt(amount) }),
  )
}

function known<T>(value: T | undefined): T {
  assert(value !== undefined)
  return value
}
