import assert from 'node:assert/strict'
import pg from 'pg'
import { sql, type Tx } from '../../src/database/database.ts'
import * as float from '../../src/float/float.ts'
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
import { type Harness, startHarness } from '../harness/harness.ts'
import { bronze, gold, silver } from '../harness/samples.ts'
import { closeException } from '../payouts/two-person-decisions.ts'
import {
  type BankFile,
  type BankStep,
  type Decision,
  isBankStep,
  limits,
  ofMember,
  partners,
  type RailName,
  type SendFault,
  type Statement,
  strangers,
} from './file-rails.ts'
import { installKiller, type Killer } from './killer.ts'
import type { Settings } from './model.ts'
import { Program } from './program.ts'
import { currencyOfRail, type Step } from './world.ts'

/** The accounts from which the pounds rail pays. */
export const ukAccounts = { default: '55779911', own: '11223344' }
export const ibans = { default: ownIban, own: 'DE02120300000000202051', other: 'DE89370400440532013000' }
/** The result of one person's decision. */
export type Decided = 'closed' | 'decided' | 'proposed' | 'repeated' | 'refused'

export const settings = {
  ...{ graceMinutes: 0, intentMinutes: 15, holdSeconds: 30, autoActivate: true, shortfallPolicy: 'carry' },
  ...{ timeZone: { name: 'UTC', offsetMinutes: 0 }, cycleDays: 14, reportsArrivals: true },
} as const satisfies Settings
export const terms = { Bronze: bronze, Gold: gold, Daily: silver, 'Silver EU': silver }
/** Of the members of each partner. */
export const tiers = ['Silver EU', 'Gold'] as const

type Known = {
  harness: Harness
  program: Program
  banks: Record<RailName, FileBank>
  setFault: (fault: SendFault) => void
  killer: Killer
}

/** The program with two file rails, driven in terms of the world. */
export class FileRailsProgram {
  readonly #of: Known
  /** Names of batches, references and message ids, and their ids. */
  #ids = new Map<string, string>()
  #names = new Map<string, string>()
  #files = 0
  /** The creation time of each bank message, so that repeated messages have the same bytes. */
  readonly #madeAt = new Map<string, Date>()

  static async start(startAt: Date): Promise<FileRailsProgram> {
    const harness = await startHarness({ startAt })
    const banks = { euros: new FileBank(), pounds: new FileBank() }
    let fault: SendFault = 'none'
    const program = await Program.start(harness, {
      ...{ all: { p0: settings, p1: settings, p2: settings }, terms, tiers, now: startAt },
      bank: ({ db, now, partnerIdOf }) =>
        settingsOf({ ownDebtor: partnerIdOf('p2'), deliveryOf: rail => withFault(banks[rail], () => fault) }).map(
          settings => fileChannel({ db, now, settings }),
        ),
    })
    const setFault = (to: SendFault) => {
      fault = to
    }
    return new FileRailsProgram({ harness, program, banks, setFault, killer: await installKiller(harness) })
  }

  private constructor(of: Known) {
    this.#of = of
  }

  get now(): Date {
    return this.#of.program.now
  }

  set now(to: Date) {
    this.#of.program.now = to
  }

  /** Restores the initial state. */
  async reset(): Promise<void> {
    const { program, banks } = this.#of
    await program.reset(...partners)
    this.#madeAt.clear()
    for (const { outbox, inbox, rejected } of Object.values(banks))
      for (const each of [outbox, inbox, rejected]) each.clear()
    this.#ids = new Map()
    this.#names = new Map([
      [strangers.payment, 'stranger'],
      [strangers.batch, 'strange batch'],
    ])
  }

  async stop(): Promise<void> {
    await this.#of.killer.stop()
    await this.#of.program.stop()
    await this.#of.harness.stop()
  }

  /** Reads the tables, bypassing the program. */
  async select<T>(query: string): Promise<T[]> {
    const { rows } = await this.#of.harness.pool.query(query)
    return rows as T[]
  }

  /** Approves a batch by its database id, for a person. */
  async approve(batchId: string, person: string): Promise<'ok' | 'refused'> {
    const { now } = this
    return await this.#inTx(tx => approve(tx, { batchId, person, now }))
  }

  /** Decides about an exception like an operator: a decision that takes two people is first proposed. */
  async decide(exceptionId: string, decided: ClosingDecision, person: string): Promise<Decided> {
    const { now } = this
    return await this.#ifAllowed(tx => decide(tx, { exceptionId, by: { person }, note: 'decided', now, ...decided }))
  }

  /** Records the outcome of a payment like an operator. */
  async decideOutcome(payment: string, decided: OutcomeByHand, person: string): Promise<Decided> {
    const { now } = this
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

  /** Makes a member withdraw, with other work beside the completion. */
  async withdraw(member: string, amount: bigint, work = async () => {}): Promise<'ok' | 'refused'> {
    const { program } = this.#of
    const currency = currencyOfRail[ofMember(member).rail]
    const created = await program.perform({ do: 'create intent', member, amount, currency })
    const [refusal, intent = ''] = created.split(' ')
    if (refusal !== 'ok') {
      await work()
      return 'refused'
    }
    const [completed] = await Promise.all([program.perform({ do: 'complete intent', intent }), work()])
    // A recovery may have taken the available balance.
    return completed.startsWith('ok') ? 'ok' : 'refused'
  }

  /** The id of an entity of the world. */
  idOf(name: string): string {
    return this.#ids.get(name) ?? this.#of.program.idOf(name)
  }

  #nameOf(id: string): string {
    return this.#names.get(id) ?? this.#of.program.nameOf(id)
  }

  /** @returns the response, in terms of the world */
  async perform(step: Step): Promise<string> {
    if (isBankStep(step)) return await this.#perform(step)
    const answer = await this.#of.program.perform(step)
    if (step.do === 'submit withdrawals') await this.#nameBatches()
    return answer
  }

  async #perform(step: BankStep): Promise<'ok' | 'refused'> {
    const { now } = this
    const inTx = (work: (tx: Tx) => Promise<unknown>) => this.#inTx(work)
    switch (step.do) {
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
        await this.#of.program.work('read-rail-reports')
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
        const money = { amount: amount < 0n ? -amount : amount, currency: currencyOfRail[rail] }
        const move = amount < 0n ? float.withdraw : float.fund
        return await inTx(tx => move(tx, { partnerId: this.idOf(partner), amount: money, reference, now }))
      }
      default:
        return step satisfies never
    }
  }

  async #inTx(work: (tx: Tx) => Promise<unknown>): Promise<'ok' | 'refused'> {
    try {
      await this.#of.program.db.transaction().execute(work)
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

  async #send(fault: SendFault): Promise<'ok'> {
    this.#of.setFault(fault)
    // A fault fails the task, if there is a batch to send.
    await this.#of.program.work('send-payout-batches').catch(error => {
      if (fault === 'none') throw error
    })
    this.#of.setFault('none')
    return 'ok'
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
        from payouts p left join payout_batches b on b.id = p.batch_id`.execute(this.#of.program.db)
    const number = ({ withdrawalId }: { withdrawalId: string }) => Number(this.#nameOf(withdrawalId).slice(1))
    for (const row of rows.sort((a, b) => number(a) - number(b))) {
      this.#names.set(row.reference, `w${number(row)}`)
      this.#ids.set(`reference of w${number(row)}`, row.reference)
      if (row.batchId === null || row.messageId === null || this.#names.has(row.batchId)) continue
      const name = `b${[...this.#ids.keys()].filter(each => /^b\d+$/.test(each)).length}`
      for (const id of [row.batchId, row.messageId]) this.#names.set(id, name)
      this.#ids.set(name, row.batchId)
      this.#ids.set(`message of ${name}`, row.messageId)
    }
  }

  #referenceOf(withdrawal: string): string {
    return this.#ids.get(`reference of ${withdrawal}`) ?? strangers.payment
  }

  #messageOf(batch: string): string {
    return this.#ids.get(`message of ${batch}`) ?? strangers.batch
  }

  /** Returns the observable state, under the names of the world. */
  async state(): Promise<Map<string, string>> {
    const { db } = this.#of.program
    const seen = await this.#of.program.state()
    const words = (...all: (string | bigint | number | null)[]) => all.filter(word => word !== null).join(' ')
    const payouts = await sql<{
      withdrawalId: string
      batchId: string
      day: string
      outcome: string | null
      isRemoved: boolean
    }>`
      select withdrawal_id, batch_id, outcome, removed_at is not null as is_removed,
             (expected_at at time zone case rail when 'euros' then 'Europe/Berlin' else 'Europe/London' end)::date::text as day
        from payouts`.execute(db)
    for (const { withdrawalId, batchId, day, outcome, isRemoved } of payouts.rows) {
      const line = words(this.#nameOf(batchId), day, outcome ?? 'open', isRemoved ? 'removed' : null)
      seen.set(`payout ${this.#nameOf(withdrawalId)}`, line)
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
      seen.set(`batch ${this.#nameOf(id)}`, line)
    }
    for (const { key, decision } of await this.#exceptions()) {
      const name = `exception ${key} ${decision ?? 'open'}`
      seen.set(name, `${Number(seen.get(name) ?? 0) + 1}`)
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
      this.#of.program.db,
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
    return all.map(({ reference, amount }) => `${this.#nameOf(reference)} ${amount}`).sort()
  }

  async disagreements(): Promise<string[]> {
    return await this.#of.program.disagreements()
  }

  async #import(file: BankFile): Promise<'ok' | 'refused'> {
    return await this.importText(file.rail, this.#textOf(file))
  }

  /** Imports a file of a rail's bank, and continues interrupted imports. */
  async importText(rail: RailName, text: string): Promise<'ok' | 'refused'> {
    const bank = this.#of.banks[rail]
    const name = `file-${++this.#files}`
    bank.inbox.set(name, text)
    await this.#of.program.work('read-bank-files')
    assert.equal(bank.inbox.size, 0)
    return bank.rejected.has(name) ? 'refused' : 'ok'
  }

  /** Imports a file, but the process is killed before it has kept all records. @returns whether it was killed before the end */
  async killImport(rail: RailName, text: string, { records }: { records: number }): Promise<boolean> {
    const bank = this.#of.banks[rail]
    bank.inbox.set(`file-${++this.#files}`, text)
    await this.#of.killer.arm(records)
    let isKilled = false
    await this.#of.program.work('read-bank-files').catch(() => {
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
    const at = this.#madeAt.get(key) ?? this.now
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
      fault === 'other currency' && says === 'money' ? 'SEK' : currencyOfRail[rail]
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
