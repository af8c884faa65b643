import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Charge } from '../../src/payouts/books/charges.ts'
import type { Decision as ClosingDecision } from '../../src/payouts/books/decisions.ts'
import type { OutcomeByHand } from '../../src/payouts/books/outcomes.ts'
import { BacsBank } from './bacs-bank.ts'
import {
  alwaysRejected,
  BankWithAccount,
  type Booking,
  type Copy,
  type Manner,
  type Rejection,
  type ReportKind,
  type ReturnWay,
} from './bank-with-account.ts'
import { choose, type Generated, is, often } from './checked.ts'
import { members, ofMember, partners, type SendFault } from './file-rails.ts'
import { type Decided, type FileRailsProgram, ibans, ukAccounts } from './file-rails-program.ts'
import { floatAtStart, opening } from './world.ts'

const decisions = ['ignore', 'give_back', 'attach', 'book', 'recover', 'write_off'] as const
type DecisionName = (typeof decisions)[number]
/** One person, two in sequence, two concurrently, two concurrently who disagree, or two during a member's completion. */
export type DecidedBy = 'one' | 'two' | 'two at once' | 'two differently' | 'two beside a completion'

const which = fc.nat({ max: 3 })
const reasons: Pick<Rejection, 'code' | 'text'>[] = [
  ...['DU01', 'AM05', 'TM01', 'DT01', 'FF01', 'AM10', 'AM04', 'MS03', undefined].map(code => ({
    code,
    text: undefined,
  })),
  { code: 'NARR', text: 'DUPLICATE FILE: message id already processed' },
  { code: 'NARR', text: 'see your contract' },
]
const decision = is<DecisionName>(
  ...(['ignore', 'give_back', 'attach', 'attach', 'book', 'recover', 'recover', 'recover'] as const),
  ...(['write_off', 'write_off'] as const),
)
const beside = ['two beside a completion', 'two beside a completion'] as const

/** Commands choose relatively: the newest entity, the one before. */
export const command = fc.oneof(
  often(5, {
    do: is('withdraw'),
    payments: fc.array(fc.record({ member: fc.nat({ max: 5 }), net: fc.bigInt({ min: 1_000n, max: 9_000n }) }), {
      minLength: 1,
      maxLength: 4,
    }),
  }),
  often(3, {
    do: is('send'),
    fault: is<SendFault>('none', 'killed before delivery', 'killed after delivery'),
  }),
  often(4, { do: is('duplicate'), copy: which }),
  often(2, {
    ...{ do: is('accept'), copy: which, isEach: fc.boolean() },
    status: is('ACTC', 'ACCP', 'ACSP'),
  }),
  {
    weight: 5,
    arbitrary: fc
      .record({
        do: is('reject'),
        copy: which,
        how: is<Rejection['how']>('file', 'each payment', 'two files'),
        why: is(...reasons),
      })
      .map(({ why, ...rest }) => ({ ...rest, ...why })),
  },
  often(8, {
    do: is('execute'),
    copy: which,
    as: is<Manner>('sum', 'sum', 'payments', 'payments', 'details', 'words', 'both'),
    failing: is(0, 0, 0, 1),
    charge: is(0n, 0n, 0n, 20n, -20n),
    isToldFirst: fc.boolean(),
  }),
  often(3, { do: is('confirm'), copy: which }),
  often(4, {
    do: is('return'),
    payment: which,
    way: is<ReturnWay>('reference', 'reference', 'words', 'remittance', 'less charges', 'rejected'),
  }),
  often(3, { do: is('reverse'), payment: which, direction: is('return', 'payment') }),
  often(2, {
    ...{ do: is('advise'), payment: which, isCharged: fc.boolean(), isAgain: fc.boolean() },
  }),
  often(2, {
    do: is('money'),
    account: fc.nat({ max: 1 }),
    amount: is(70_000n, 70_000n, -300n),
    reference: is(null, 0, 1),
    isRecorded: fc.boolean(),
  }),
  often(8, {
    ...{ do: is('report'), isRead: fc.boolean(), isLater: is(false, false, true) },
    kind: is<ReportKind>('camt.053', 'camt.054'),
  }),
  often(2, { do: is('kill'), kind: is<ReportKind>('camt.053', 'camt.054'), records: is(1, 2, 3, 4) }),
  often(2, { do: is('again'), file: which, isChanged: fc.boolean() }),
  often(3, { do: is('wait'), hours: is(1, 24, 24, 72) }),
  often(12, {
    ...{ do: is('decide'), exception: which, decision, other: decision, payment: which },
    isCharged: fc.boolean(),
    by: is<DecidedBy>('one', 'two', 'two', 'two at once', 'two differently', ...beside),
  }),
  often(3, {
    ...{ do: is('outcome'), payment: which },
    outcome: is('paid', 'failed', 'returned', 'returned'),
  }),
  often(3, { do: is('reconcile') }),
)
export type Command = Generated<typeof command>

/** Everything that can happen to the program. A search in which one of these never happens proves less than it claims. */
export const happenings = [
  ...['withdraw', 'send none', 'send killed before delivery', 'send killed after delivery', 'duplicate'],
  ...['accept a batch', 'accept payments', 'confirm'],
  ...['reject a duplicate file', 'reject a duplicate each payment', 'reject a duplicate two files'],
  ...['reject file', 'reject each payment', 'reject two files', 'reject in words', 'reject without a reason'],
  ...['execute sum', 'execute payments', 'execute details', 'execute words', 'execute both', 'execute a duplicate'],
  ...['fail a payment', 'charge beside a debit', 'deduct from a debit'],
  ...['return reference', 'return words', 'return remittance', 'return less charges', 'return rejected'],
  ...['reverse return', 'reverse payment', 'advise', 'advise less charges', 'advise again', 'money'],
  ...['report camt.053', 'report camt.054', 'report later', 'kill an import', 'again same', 'again changed'],
  ...decisions,
  ...['attach with a charge', 'give_back with a charge', 'decide by two', 'decide by two at once'],
  ...['decide by two differently', 'recover beside a completion', 'decide in pounds'],
  ...['outcome paid', 'outcome failed', 'outcome returned', 'reconcile'],
] as const
export type Happening = (typeof happenings)[number]

const accounts = [ibans.default, ibans.own]
const euroMembers = members.filter(each => ofMember(each).rail === 'euros')
const poundMembers = members.filter(each => ofMember(each).rail === 'pounds')

/** The kinds of exceptions that `ignore` closes as unrelated money. */
const notOurs: readonly string[] = ['money_in', 'money_out', 'unmatched']

/** The usual subjects of the decisions. */
const usual: Record<DecisionName, readonly string[]> = {
  ignore: ['money_in', 'money_out', 'duplicate', 'rejected', 'contradiction', 'float'],
  give_back: ['duplicate', 'rejected', 'float', 'contradiction', 'amount'],
  attach: ['money_in', 'money_out', 'amount'],
  book: ['money_in', 'money_out', 'contradiction'],
  recover: ['paid_after_give_back', 'money_out'],
  write_off: ['paid_after_give_back', 'money_out', 'amount'],
}

type ExceptionRow = {
  id: string
  rail: 'euros' | 'pounds'
  fingerprint: string
  kind: string
  decision: string | null
  reference: string | null
  partnerId: string | null
  outcome: string | null
  isBooked: boolean
  /** The amount that moved, negative if it left the account; null if the answer moved no money. */
  amount: bigint | null
}

type PaymentRow = {
  reference: string
  rail: 'euros' | 'pounds'
  partnerId: string
  messageId: string | null
  netAmount: bigint
  outcome: string | null
  /** The amount that the books have moved for the payment. */
  float: bigint
  isByHand: boolean
}

/** One run: the program, its operators, and the banks. */
export class Scene {
  readonly log: string[] = []
  readonly #program: FileRailsProgram
  readonly #happened: (what: Happening) => void
  readonly #bank: BankWithAccount
  readonly #bacs = new BacsBank()
  readonly #files: string[] = []
  /** The payment that an operator attributes to a booking. */
  readonly #attached = new Map<string, string>()
  #now: number

  constructor(
    program: FileRailsProgram,
    { startAt, happened }: { startAt: Date; happened: (what: Happening) => void },
  ) {
    this.#program = program
    this.#happened = happened
    this.#now = startAt.getTime()
    this.#bank = new BankWithAccount({
      now: startAt,
      balances: new Map([
        [ibans.default, 2n * floatAtStart],
        [ibans.own, floatAtStart],
      ]),
    })
  }

  /** Pays the members so little that a recovery takes the amount that a completion needs, and the rest is owed. */
  async begin(): Promise<void> {
    this.#tick()
    for (const step of opening({ available: 60_000n })) await this.#program.perform(step)
  }

  async perform(command: Command): Promise<void> {
    this.log.push(`${new Date(this.#now).toISOString()} ${fc.stringify(command)}`)
    this.#tick()
    const bank = this.#bank
    switch (command.do) {
      case 'withdraw':
        for (const { member, net } of command.payments) await this.#withdraw(choose(members, member) ?? 'm0', net)
        break
      case 'send':
        await this.#send(command.fault)
        break
      case 'duplicate': {
        const copy = await this.#copy(command.copy)
        if (copy === undefined) break
        bank.duplicate(copy)
        this.#happened('duplicate')
        break
      }
      case 'accept': {
        const copy = choose(await this.#received(), command.copy)
        if (copy === undefined) break
        await this.#import(bank.accept(copy, command))
        this.#happened(command.isEach ? 'accept payments' : 'accept a batch')
        break
      }
      case 'reject':
        await this.#reject(command)
        break
      case 'execute':
        await this.#execute(command)
        break
      case 'confirm': {
        const text = choose(
          bank.copies.flatMap(copy => (copy.state === 'executed' ? [copy] : [])),
          command.copy,
        )
        const confirmed = text === undefined ? undefined : bank.confirm(text)
        if (confirmed === undefined) break
        await this.#import(confirmed)
        this.#happened('confirm')
        break
      }
      case 'return': {
        const reference = choose(bank.paid(), command.payment)
        if (reference === undefined) break
        const rejected = bank.return(reference, command.way)
        if (rejected !== undefined) await this.#import(rejected)
        this.#happened(`return ${command.way}`)
        break
      }
      case 'reverse': {
        const { direction } = command
        const reference = choose(direction === 'return' ? bank.cameBack() : bank.paid(), command.payment)
        if (reference === undefined) break
        bank.reverse(reference, direction)
        this.#happened(`reverse ${direction}`)
        break
      }
      case 'advise':
        await this.#advise(command)
        break
      case 'money':
        await this.#money(command)
        break
      case 'report':
        await this.#report(command.kind, command.isLater)
        if (command.isRead) await this.#program.perform({ do: 'read reports' })
        break
      case 'kill':
        await this.#kill(command)
        break
      case 'again': {
        const file = choose(this.#files, command.file)
        if (file === undefined) break
        await this.#program.importText('euros', command.isChanged ? `${file}<!-- again -->` : file)
        this.#happened(command.isChanged ? 'again changed' : 'again same')
        break
      }
      case 'wait':
        this.#now += command.hours * 3_600_000
        break
      case 'decide':
        await this.#decide(command)
        break
      case 'outcome':
        await this.#decideOutcome(command)
        break
      case 'reconcile':
        await this.#reconcile()
        this.#happened('reconcile')
        break
      default:
        command satisfies never
    }
  }

  /** The banks process every remaining copy, and report everything. */
  async end(): Promise<void> {
    await this.#send('none')
    for (const [index, copy] of this.#bank.copies.filter(({ state }) => state === 'received').entries()) {
      if (this.#isDuplicate(copy) && index % 2 === 0)
        for (const text of this.#bank.reject(copy, { how: 'file', code: 'DU01', text: undefined }))
          await this.#import(text)
      else this.#bank.execute(copy, { as: index % 3 === 0 ? 'payments' : 'sum', failing: 0 })
    }
    // Bacs does not confirm payments: after a week a payment counts as paid.
    this.#now += 7 * 86_400_000
    await this.#reconcile()
    const unpaid = [...(await this.#payments()).values()].filter(
      ({ rail, reference, outcome }) =>
        rail === 'pounds' && outcome === null && this.#bacs.moved(new Date(this.#now)).has(reference),
    )
    assert.deepEqual(unpaid, [])
    assert.deepEqual(await this.#program.disagreements(), [])
  }

  /** Each step happens at a separate instant. */
  #tick(ms = 1): void {
    this.#now += ms
    this.#program.now = this.#bank.now = new Date(this.#now)
  }

  async #withdraw(member: string, net: bigint): Promise<void> {
    if ((await this.#program.withdraw(member, net)) !== 'ok') {
      // A bank's answer has restricted the member.
      await this.#program.perform({ do: 'release member', member })
      if ((await this.#program.withdraw(member, net)) !== 'ok') return
    }
    this.#happened('withdraw')
  }

  async #send(fault: SendFault): Promise<void> {
    this.#tick(31_000)
    await this.#program.perform({ do: 'submit withdrawals', answer: 'pending' })
    const [open] = await this.#program.select<{ due: Date | null }>(
      `select max(cut_off_at) as due from payout_batches where status = 'building' and closed_at is null`,
    )
    if (open?.due) this.#now = Math.max(this.#now, open.due.getTime())
    for (const each of [fault, 'none'] as const) {
      this.#tick()
      await this.#program.perform({ do: 'send', fault: each })
      const waiting = await this.#program.select<{ id: string }>(
        `select id from payout_batches where status = 'building' and closed_at is not null`,
      )
      for (const { id } of waiting) for (const person of ['Ada', 'Bob']) await this.#program.approve(id, person)
    }
    this.#tick()
    await this.#program.perform({ do: 'send', fault: 'none' })
    if (this.#receive() > 0) this.#happened(fault === 'not delivered' ? 'send none' : `send ${fault}`)
  }

  /** @returns the number of new files */
  #receive(): number {
    const before = this.#bank.copies.length
    this.#bank.receive(this.#program.receivedBy('euros'))
    this.#bacs.receive(this.#program.receivedBy('pounds'))
    return this.#bank.copies.length - before
  }

  /** The waiting copies, or those of a new file if there are none. */
  async #received(): Promise<Copy[]> {
    const waiting = () => this.#bank.copies.filter(({ state }) => state === 'received')
    if (waiting().length > 0) return waiting()
    for (const member of euroMembers) await this.#withdraw(member, 2_000n)
    await this.#send('none')
    return waiting()
  }

  /** A copy that the bank has received. */
  async #copy(which: number): Promise<Copy | undefined> {
    if (this.#bank.copies.length === 0) await this.#received()
    return choose(this.#bank.copies, which)
  }

  /** Whether the bank has executed another copy. */
  #isDuplicate({ messageId }: Copy): boolean {
    return this.#bank.copies.some(each => each.messageId === messageId && each.state === 'executed')
  }

  async #reject({ copy: which, how, code, text }: Command & { do: 'reject' }): Promise<void> {
    const copy = choose(await this.#received(), which)
    if (copy === undefined) return
    const isDuplicate = this.#isDuplicate(copy)
    const isAlways = code !== undefined && alwaysRejected.includes(code)
    // If the bank splits a file into payments, only the reason shows that there is another copy.
    const mustSay = how === 'two files' && !isAlways
    const why =
      mustSay || (isAlways && !this.#bank.canRejectAlways(copy)) ? { code: 'DU01', text: undefined } : { code, text }
    for (const file of this.#bank.reject(copy, { how, ...why })) await this.#import(file)
    this.#happened(isDuplicate ? `reject a duplicate ${how}` : `reject ${how}`)
    if (why.text !== undefined) this.#happened('reject in words')
    else if (why.code === undefined) this.#happened('reject without a reason')
  }

  async #execute({ copy: which, as, failing, charge, isToldFirst }: Command & { do: 'execute' }): Promise<void> {
    const copy = choose(await this.#received(), which)
    if (copy === undefined) return
    const payments = await this.#payments()
    const isPristine = copy.orders.every(({ reference }) => payments.get(reference)?.outcome === null)
    const isDuplicate = this.#isDuplicate(copy)
    // The program understands notices and statements that book the same money in two ways, as long as the amounts fit.
    const manner = as === 'both' && !isPristine ? 'sum' : as
    const failures = this.#bank.execute(copy, { as: manner, failing: manner === 'both' ? 0 : failing, charge })
    this.#happened(isDuplicate ? 'execute a duplicate' : `execute ${manner}`)
    if (charge !== 0n) this.#happened(charge > 0n ? 'charge beside a debit' : 'deduct from a debit')
    if (manner === 'both') for (const kind of ['camt.054', 'camt.053'] as const) await this.#report(kind)
    if (failures === undefined) return
    if (!isToldFirst) await this.#report('camt.054')
    await this.#import(failures)
    this.#happened('fail a payment')
  }

  async #advise({ payment, isCharged, isAgain }: Command & { do: 'advise' }): Promise<void> {
    if (isAgain) {
      const text = this.#bacs.repeat()
      if (text === undefined) return
      assert.equal(await this.#program.importText('pounds', text), 'ok')
      return this.#happened('advise again')
    }
    if (this.#bacs.paid(new Date(this.#now)).length === 0) {
      for (const member of poundMembers) await this.#withdraw(member, 2_000n)
      await this.#send('none')
      this.#tick(4 * 86_400_000)
    }
    const reference = choose(this.#bacs.paid(new Date(this.#now)), payment)
    if (reference === undefined) return
    const text = this.#bacs.return(reference, { isCharged, code: payment === 0 ? 'B' : '2' })
    assert.equal(await this.#program.importText('pounds', text), 'ok')
    this.#happened(isCharged ? 'advise less charges' : 'advise')
  }

  async #import(text: string): Promise<void> {
    this.#tick()
    this.#files.push(text)
    assert.equal(await this.#program.importText('euros', text), 'ok')
  }

  async #report(kind: ReportKind, isLater = false): Promise<void> {
    for (const iban of accounts) {
      const text = this.#bank.report(iban, kind, { isLater })
      if (text === undefined) continue
      await this.#import(text)
      this.#happened(`report ${kind}`)
      if (isLater) this.#happened('report later')
    }
  }

  /** Imports a report, but the process is killed. The next import continues it. */
  async #kill({ kind, records }: Command & { do: 'kill' }): Promise<void> {
    for (const iban of accounts) {
      const text = this.#bank.report(iban, kind)
      if (text === undefined) continue
      this.#tick()
      this.#files.push(text)
      if (await this.#program.killImport('euros', text, { records })) this.#happened('kill an import')
    }
  }

  async #money({ account, amount, reference: number, isRecorded }: Command & { do: 'money' }): Promise<void> {
    const iban = accounts[account] ?? ibans.default
    const partner = iban === ibans.own ? 'p2' : 'p0'
    const reference = number === null ? null : `top-up ${number}`
    this.#bank.other(iban, amount, reference)
    this.#happened('money')
    if (isRecorded && reference !== null)
      await this.#program.perform({ do: 'fund', partner, rail: 'euros', amount, reference })
  }

  async #decide({
    exception: which,
    decision,
    other,
    payment,
    isCharged,
    by,
  }: Command & { do: 'decide' }): Promise<void> {
    const open = (await this.#exceptions()).filter(each => each.decision === null)
    const fitting = open.filter(({ kind }) => usual[decision].includes(kind))
    const exception = choose(which === 3 || fitting.length === 0 ? open : fitting, which)
    if (exception === undefined) return
    const decided = await this.#decisionOf(exception, { decision, payment, isCharged })
    if (decided === undefined) return
    const say = async (person: string, what = decided) => {
      const done = await this.#program.decide(exception.id, what, person)
      this.log.push(`  ${person}: ${what.decision} of ${exception.kind} ${exception.fingerprint}: ${done}`)
      if (done === 'closed') this.#closed(exception, what)
      return done
    }
    switch (by) {
      case 'one':
        await say('Ada')
        break
      case 'two':
        if ((await say('Ada')) === 'proposed' && (await say('Bob')) === 'closed') this.#happened('decide by two')
        break
      case 'two at once': {
        const done = await Promise.all([say('Ada'), say('Bob')])
        assert(done.filter(each => each === 'closed').length <= 1)
        if (done.includes('closed')) this.#happened('decide by two at once')
        break
      }
      case 'two differently': {
        const opposed = await this.#decisionOf(exception, { decision: other, payment, isCharged })
        if (opposed === undefined) break
        const done = await Promise.all([say('Ada'), say('Bob', opposed)])
        assert(done.filter(each => each === 'closed').length <= 1)
        if (done.includes('closed')) this.#happened('decide by two differently')
        break
      }
      case 'two beside a completion': {
        const member = (await this.#memberOf(exception)) ?? 'm0'
        let done: Decided = 'refused'
        await this.#program.withdraw(member, 2_000n, async () => {
          done = await say('Ada')
          if (done === 'proposed') done = await say('Bob')
          await this.#program.perform({ do: 'read reports' })
        })
        if (decision === 'recover' && (done as Decided) === 'closed') this.#happened('recover beside a completion')
        break
      }
      default:
        by satisfies never
    }
  }

  #closed(exception: ExceptionRow, decided: ClosingDecision): void {
    this.#happened(decided.decision)
    if (exception.rail === 'pounds') this.#happened('decide in pounds')
    if ('charge' in decided && decided.charge !== undefined) this.#happened(`${decided.decision} with a charge`)
    const booking = this.#bookingOf(exception)?.booking
    if (booking === undefined) return
    if (decided.decision === 'attach' && 'reference' in decided && !this.#isBatch(decided.reference))
      this.#attached.set(booking.id, decided.reference)
    if (decided.decision === 'recover' && exception.reference === null && decided.references?.[0] !== undefined)
      this.#attached.set(booking.id, decided.references[0])
  }

  #isBatch(reference: string): boolean {
    return this.#bank.copies.some(({ messageId }) => messageId === reference)
  }

  async #memberOf({ reference }: ExceptionRow): Promise<string | undefined> {
    const [row] = await this.#program.select<{ memberId: string }>(
      `select w.member_id as "memberId" from payouts p join withdrawals w on w.id = p.withdrawal_id
        left join payout_batches b on b.id = p.batch_id where '${reference}' in (p.reference, b.message_id) limit 1`,
    )
    return row === undefined ? undefined : members.find(each => this.#program.idOf(each) === row.memberId)
  }

  /** The decisions of operators who know the bank's actions, but now and then pick the wrong payment for a booking in words. */
  async #decisionOf(
    exception: ExceptionRow,
    { decision, payment, isCharged }: { decision: DecisionName; payment: number; isCharged: boolean },
  ): Promise<ClosingDecision | undefined> {
    const { kind, reference: named, amount } = exception
    const payments = await this.#payments()
    const booking = this.#bookingOf(exception)?.booking
    const own = booking?.parts.find(each => each.reference !== null)?.reference
    const iban = booking?.iban ?? ibans.default
    const partnerId = exception.partnerId ?? this.#program.idOf(iban === ibans.own ? 'p2' : 'p0')
    const inBatch = [...payments.values()].filter(({ messageId }) => messageId !== null && messageId === named)
    const isGivenBack = ({ outcome }: PaymentRow) => outcome === 'failed' || outcome === 'returned'
    const charge = isCharged ? this.#chargeOf(exception, { payment, payments }) : {}
    switch (decision) {
      case 'ignore':
        return { decision }
      case 'give_back': {
        const paid = this.#bank.moved()
        const unpaid = inBatch.filter(({ reference, outcome }) => outcome === null && !paid.has(reference))
        const references = amount === null ? [] : unpaid.map(({ reference }) => reference)
        return { decision, ...(references.length === 0 ? {} : { references }), ...charge }
      }
      case 'attach': {
        if (kind === 'amount' && named !== null) return { decision, reference: named, ...charge }
        const known = named !== null && payments.has(named) ? named : own
        const isMistaken = payment === 0 && (amount ?? 0n) > 0n
        const reference = (isMistaken ? undefined : known) ?? choose([...this.#bank.moved().keys()], payment)
        return reference === undefined ? undefined : { decision, reference, ...charge }
      }
      case 'book':
        return { decision, partnerId }
      case 'recover': {
        const madeByBank = new Set(this.#bank.paid())
        if (amount !== null && named === null) return own == null ? undefined : { decision, references: [own] }
        const concerned = inBatch.length > 0 ? inBatch : [...payments.values()].filter(each => each.reference === named)
        const ofDebit = new Set(booking?.parts.map(({ reference }) => reference))
        const references = concerned
          .filter(isGivenBack)
          .filter(({ reference }) => (amount === null ? madeByBank.has(reference) : ofDebit.has(reference)))
          .map(({ reference }) => reference)
        // An acceptance alone does not show that the bank has paid.
        if (references.length === 0) return undefined
        return inBatch.length > 0 ? { decision, references } : { decision }
      }
      case 'write_off':
        return isCharged || kind !== 'paid_after_give_back' ? { decision, partnerId } : { decision }
      default:
        return decision satisfies never
    }
  }

  #chargeOf(
    exception: ExceptionRow,
    { payment, payments }: { payment: number; payments: ReadonlyMap<string, PaymentRow> },
  ): { charge?: Charge } {
    const booking = this.#bookingOf(exception)?.booking
    const ofPayment = payments.get(exception.reference ?? '')
    const taken =
      exception.rail === 'pounds'
        ? (ofPayment?.netAmount ?? 0n) - (exception.amount ?? 0n)
        : (booking?.parts.find(({ reference }) => reference === null)?.amount ?? 0n)
    if (taken === 0n) return {}
    const currency = exception.rail === 'pounds' ? 'GBP' : 'EUR'
    const borneBy = payment % 2 === 0 ? 'operator' : 'partner'
    return { charge: { amount: { amount: taken < 0n ? -taken : taken, currency }, borneBy } }
  }

  /** An operator enters the outcome shown in the bank's portal. */
  async #decideOutcome({ payment, outcome }: Command & { do: 'outcome' }): Promise<void> {
    const moved = this.#bank.moved()
    const sent = [...(await this.#payments()).values()].filter(({ rail, messageId }) => rail === 'euros' && messageId)
    const fitting = sent.filter(({ reference, outcome: known }) => {
      const amount = moved.get(reference)
      if (outcome === 'failed') return known === null
      if (outcome === 'paid') return known === null && amount !== undefined && amount < 0n
      return (known === null || known === 'paid') && amount !== undefined && this.#creditOf(reference) !== undefined
    })
    const reference = choose(fitting, payment)?.reference
    if (reference === undefined) return
    const credit = this.#creditOf(reference)
    const amount = { amount: credit?.amount ?? 0n, currency: 'EUR' } as const
    const decided: OutcomeByHand =
      outcome === 'returned' ? { outcome, credit: { bookedOn: credit?.bookedOn ?? '', amount } } : { outcome }
    for (const person of ['Ada', 'Bob']) {
      const done = await this.#program.decideOutcome(reference, decided, person)
      this.log.push(`  ${person}: ${reference} is ${outcome}: ${done}`)
      if (done === 'decided') this.#happened(`outcome ${outcome}`)
      if (done !== 'proposed') break
    }
  }

  /** The credit of a payment that was made once and came back. */
  #creditOf(reference: string): Booking | undefined {
    const about = this.#bank.bookings.filter(({ parts }) => parts.some(each => each.reference === reference))
    const credits = about.filter(({ amount }) => amount > 0n)
    return about.length === 2 && credits.length === 1 ? credits[0] : undefined
  }

  /** The bank reports everything and the program reads it, so nothing is in flight. */
  async #reconcile(): Promise<void> {
    this.#tick()
    await this.#program.perform({ do: 'send', fault: 'none' })
    this.#receive()
    // Interrupted imports continue.
    await this.#program.importText('pounds', 'Reference,Amount,Code\r\n')
    await this.#report('camt.053')
    await this.#program.perform({ do: 'read reports' })
    await this.#check()
  }

  async #exceptions(): Promise<ExceptionRow[]> {
    return await this.#program.select<ExceptionRow>(
      `select id, rail, fingerprint, kind, decision, reference, partner_id as "partnerId", outcome,
              booked_on is not null as "isBooked",
              case when booked_on is null and rail = 'euros' then null when outcome = 'paid' and amount > 0 then -amount
                   else amount end as amount
         from payout_exceptions order by id`,
    )
  }

  async #payments(): Promise<Map<string, PaymentRow>> {
    const rows = await this.#program.select<PaymentRow>(
      `select p.reference, p.rail, p.partner_id as "partnerId", b.message_id as "messageId", p.net_amount as "netAmount", p.outcome,
              coalesce((select sum(case when t.debit = 'float' then t.amount when t.credit = 'float' then -t.amount else 0 end)
                          from ledger_transfers t
                         where t.partner_id = p.partner_id and t.movement_id = p.withdrawal_id), 0)::bigint as float,
              exists (select from bank_records r where r.reference = p.reference and r.message_id = 'operator') as "isByHand"
         from payouts p left join payout_batches b on b.id = p.batch_id order by p.reference`,
    )
    return new Map(rows.map(row => [row.reference, row]))
  }

  /** The booking of an exception, and the transaction if the booking has several. */
  #bookingOf({ fingerprint }: ExceptionRow): { booking: Booking; key: string } | undefined {
    const [, id, place] = /\b(E\d+)(?:\/(\d+))?\b/.exec(fingerprint) ?? []
    const booking = this.#bank.bookings.find(each => each.id === id)
    if (booking === undefined) return undefined
    return { booking, key: isDetailed(booking) ? `${id}/${place ?? 1}` : booking.id }
  }

  async #check(): Promise<void> {
    const exceptions = await this.#exceptions()
    const payments = await this.#payments()
    const wrong = [
      ...this.#checkEuros(
        exceptions.filter(({ rail }) => rail === 'euros'),
        payments,
      ),
      ...this.#checkPounds(
        exceptions.filter(({ rail }) => rail === 'pounds'),
        payments,
      ),
    ]
    const explained = this.#explained
    const floats = await this.#program.select<{ partnerId: string; currency: string; amount: bigint }>(
      `select partner_id as "partnerId", currency, sum(case when debit = 'float' then amount else -amount end)::bigint as amount
         from ledger_transfers where 'float' in (debit, credit) group by 1, 2`,
    )
    const poundsMoved = [...this.#bacs.moved(new Date(this.#now)).values()]
    for (const [account, explains] of explained) {
      const [currency, isOwn] =
        account in { [ibans.default]: 0, [ibans.own]: 0 }
          ? (['EUR', account === ibans.own] as const)
          : (['GBP', account === ukAccounts.own] as const)
      const own = partners.filter(each => (each === 'p2') === isOwn).map(each => this.#program.idOf(each))
      const book = floats.reduce(
        (sum, each) => (each.currency === currency && own.includes(each.partnerId) ? sum + each.amount : sum),
        0n,
      )
      const bank =
        currency === 'EUR'
          ? this.#bank.balanceOf(account)
          : poundsMoved.reduce((sum, each) => (each.account === account ? sum + each.amount : sum), 0n)
      if (bank !== book + explains)
        wrong.push(
          `${account} holds ${bank}; the books say ${book}, and exceptions explain ${explains}: ${bank - book - explains} is missing`,
        )
    }
    if (wrong.length > 0)
      throw new Error(
        [
          ...wrong,
          ...this.#bank.bookings.map(({ toldIn, ...each }) => fc.stringify(each)),
          ...exceptions.map(each => fc.stringify(each)),
        ].join('\n'),
      )
  }

  /** The amounts that exceptions explain, by account. */
  #explained = new Map<string, bigint>()

  #explain(account: string, amount: bigint): void {
    this.#explained.set(account, (this.#explained.get(account) ?? 0n) + amount)
  }

  #checkEuros(exceptions: readonly ExceptionRow[], payments: ReadonlyMap<string, PaymentRow>): string[] {
    this.#explained = new Map([...accounts, ukAccounts.default, ukAccounts.own].map(account => [account, 0n]))
    const wrong: string[] = []
    // The amounts left to the operator, by booking or transaction; 0 if a float movement covers the amount.
    const left = new Map<string, bigint>()
    for (const exception of exceptions) {
      const { amount, decision, kind, fingerprint } = exception
      const isNotOurs = decision === 'ignore' && notOurs.includes(kind)
      const isMovement = decision === 'book' || decision === 'write_off'
      if (amount === null || (decision !== null && !isNotOurs && !isMovement)) continue
      const found = this.#bookingOf(exception)
      if (found === undefined)
        wrong.push(`the bank booked nothing of what the exception ${kind} ${fingerprint} is about`)
      else if (left.has(found.key)) wrong.push(`${found.key} has two exceptions`)
      else left.set(found.key, isMovement ? 0n : amount)
    }
    // The bank's movements for a payment must be in the books or in exceptions.
    const moved = new Map<string, { iban: string; booked: bigint; asked: bigint[] }>()
    for (const booking of this.#bank.bookings) {
      const { id, iban, amount, parts } = booking
      for (const [index, { reference, ...part }] of parts.entries()) {
        const asked = left.get(isDetailed(booking) ? `${id}/${index + 1}` : id)
        const whole = isDetailed(booking) ? part.amount : amount
        if (asked !== undefined && asked !== 0n && asked !== whole)
          wrong.push(`${id} moved ${whole}, but its exception says ${asked}`)
        if (reference === null) {
          if (asked !== undefined && asked !== 0n) this.#explain(iban, part.amount)
          continue
        }
        const of = this.#attached.get(id) ?? reference
        const known = moved.get(of) ?? { iban, booked: 0n, asked: [] }
        moved.set(of, known)
        if (asked === undefined) known.booked += part.amount
        else if (asked !== 0n) known.asked.push(part.amount)
      }
    }
    for (const { reference, rail, float, outcome, isByHand } of payments.values()) {
      if (rail !== 'euros') continue
      const { iban, booked, asked } = moved.get(reference) ?? { iban: ibans.default, booked: 0n, asked: [] }
      // The books may imply the subject of an exception: a return implies the payment.
      const implied = sumsOf(asked).find(each => booked + each === float)
      if (implied === undefined)
        wrong.push(
          `${reference}: the bank moved ${booked} that no exception explains, and ${asked.join()} that one does; the books ${float}`,
        )
      for (const each of asked) this.#explain(iban, each)
      this.#explain(iban, -(implied ?? 0n))
      const isRejected = this.#bank.rejectedAfterwards.has(reference)
      if (outcome === 'failed' && !isByHand && !isRejected && this.#bank.debitsOf(reference).length > 0)
        wrong.push(`${reference}: given back without a decision, though the bank paid it`)
    }
    return wrong
  }

  #checkPounds(exceptions: readonly ExceptionRow[], payments: ReadonlyMap<string, PaymentRow>): string[] {
    const wrong: string[] = []
    const moved = this.#bacs.moved(new Date(this.#now))
    for (const { reference, rail, float, netAmount: amount, outcome } of payments.values()) {
      if (rail !== 'pounds') continue
      const { account, returned } = moved.get(reference) ?? { account: ukAccounts.default, returned: 0n }
      const about = exceptions.filter(each => each.reference === reference && each.outcome === 'returned')
      // An advice repeated in other files is the same money, so one decision covers all of them.
      const isDecided = about.some(({ decision }) => decision === 'give_back' || decision === 'attach')
      const asked = isDecided ? 0n : (about.find(({ decision }) => decision === null)?.amount ?? 0n)
      // The amount that the bank kept from a return is a charge with a separate movement.
      const back = returned > 0n && asked === 0n ? amount : 0n
      const should = moved.has(reference) ? back - amount : 0n
      if (float !== should)
        wrong.push(
          `${reference}: is ${outcome}; the books say ${float} instead of ${should}, and ${returned} came back`,
        )
      this.#explain(account, asked)
    }
    return wrong
  }
}

function isDetailed({ parts, entry }: Booking): boolean {
  return parts.length > 1 && entry.details.includes('<TxDtls>') && parts.every(({ reference }) => reference !== null)
}

/** The sums of all subsets of some amounts, starting with the empty subset. */
function sumsOf(amounts: readonly bigint[]): bigint[] {
  return amounts.reduce((sums, amount) => sums.concat(sums.map(sum => sum + amount)), [0n])
}
