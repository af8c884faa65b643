/**
 * A reference model of the contract's money rules for one partner: a few maps in memory, no database, and no code of the program.
 * Instants are milliseconds since 1970, amounts are in minor units.
 *
 * It has no ledger. A deduction is what a member took out of a cycle; the ledger must independently arrive at the same.
 */

export type Currency = 'GBP' | 'EUR'
export type TierName = 'Bronze' | 'Gold' | 'Daily' | 'Silver EU'
export type AccountName = 'A' | 'B' | 'EU' | 'failing' | 'none'
export type Outcome = 'paid' | 'failed' | 'returned'
/** The response of a polled bank when it is sent payments or polled about them; 'silent' is a failed call. */
export type BankAnswer = Outcome | 'pending' | 'unknown' | 'silent'
/** What a bank's reason for not paying means for the member. */
export type Restriction = 'account' | 'review'

export type Terms = {
  feeFixed: bigint
  feeBps: number
  feeMin: bigint | null
  feeMax: bigint | null
  feePayer: 'member' | 'employer'
  lowerLimit: bigint
  upperLimit: bigint
  withdrawalsPerDay: number | null
  withdrawalsPerCycle: number | null
}

export type Settings = {
  graceMinutes: number
  intentMinutes: number
  holdSeconds: number
  autoActivate: boolean
  shortfallPolicy: 'carry' | 'write_off'
  /** Whether the bank reports the money of settlements, which is a receivable until then. */
  reportsArrivals: boolean
  /** A time zone without clock changes, so that every day has 24 hours. */
  timeZone: { name: string; offsetMinutes: number }
  /** Length of a pay cycle. One cycle starts on 2024-01-01. */
  cycleDays: 7 | 14
}

export type Line = { member: string; amount: bigint; currency: Currency }

/** One step, performed by both the program and the model. Members, intents, … are named m0, i0, w0, r0, c0 in order of creation. */
export type Step =
  | { do: 'upload pay run'; lines: Line[] }
  | { do: 'revert pay run'; run: string }
  | { do: 'create intent'; member: string; amount: bigint; currency: Currency }
  | { do: 'complete intent'; intent: string }
  | { do: 'cancel intent'; intent: string }
  | { do: 'cancel withdrawal'; withdrawal: string }
  | { do: 'report payout'; withdrawal: string; outcome: Outcome }
  | { do: 'settle'; cycle: string; lines: Line[] }
  | { do: 'receive settlement'; cycle: string; amount: bigint; currency: Currency }
  | { do: 'set terms'; tier: TierName; terms: Terms }
  | { do: 'change tier'; member: string; tier: TierName }
  | { do: 'change account'; member: string; account: AccountName }
  | { do: 'offboard member'; member: string }
  | { do: 'reinstate member'; member: string }
  | { do: 'activate member'; member: string }
  | { do: 'release member'; member: string }
  | { do: 'fund float'; amount: bigint; currency: Currency; partner?: string }
  | { do: 'withdraw from float'; amount: bigint; currency: Currency }
  | { do: 'withdraw revenue'; amount: bigint; currency: Currency }
  | { do: 'issue invoice'; currency: Currency }
  | { do: 'pay invoice'; invoice: string }
  | { do: 'reopen invoice'; invoice: string }
  | { do: 'void invoice'; invoice: string }
  | { do: 'set floor'; floor: bigint | null; currency: Currency }
  | { do: 'pause' }
  | { do: 'resume' }
  | { do: 'fold float changes' }
  | { do: 'make pay runs available' }
  | { do: 'expire intents' }
  | { do: 'submit withdrawals'; answer: BankAnswer }
  | { do: 'poll withdrawals'; answer: BankAnswer }
  | { do: 'close cycles' }
  /** Ends the cycle, and then releases the unused pay of so many members. */
  | { do: 'begin to close'; members: number }
  | { do: 'watch floats' }
  | { do: 'read balance'; member: string }
  | { do: 'read deductions'; cycle: string }
  | { do: 'read statement'; member: string; currency: Currency; asOf: number }

/** The entity whose partner a step concerns; undefined if it concerns all. */
export function subjectOf(step: Step): string | undefined {
  if ('partner' in step) return step.partner
  if ('member' in step) return step.member
  if ('intent' in step) return step.intent
  if ('withdrawal' in step) return step.withdrawal
  return 'lines' in step ? step.lines[0]?.member : undefined
}

/** Names entities in order of creation, also across partners: m0, m1, i0, … */
export class Names {
  readonly #counts = new Map<string, number>()

  next(kind: string): string {
    const count = this.count(kind)
    this.#counts.set(kind, count + 1)
    return `${kind}${count}`
  }

  count(kind: string): number {
    return this.#counts.get(kind) ?? 0
  }
}

// In the order in which the program lists them.
const currencies = ['EUR', 'GBP'] as const
export const currencyOf: Record<TierName, Currency> = { Bronze: 'GBP', Gold: 'GBP', Daily: 'GBP', 'Silver EU': 'EUR' }

type Balance = { available: bigint; owed: bigint }
type Member = { status: 'invited' | 'active' | 'inactive'; tier: TierName; account: AccountName }
type Intent = {
  status: 'pending' | 'completed' | 'expired' | 'cancelled'
  member: string
  cycle: string
  currency: Currency
  amount: bigint
  net: bigint
  fee: bigint
  employerFee: bigint
  account: AccountName
  expiresAt: number
}
type Withdrawal = {
  status: 'held' | 'submitted' | Outcome | 'cancelled'
  intent: string
  adjustedIn: string | null
  balanceAfter: bigint
  createdAt: number
  dueAt: number
  /** The part of the member's fee that no settlement has covered or written off, and the cycle that it is due in. */
  uncovered: bigint
  feeDueIn: string
  /** What settlements cover of the fee, by cycle. */
  covered: Map<string, bigint>
}
type Run = {
  status: 'Scheduled' | 'Available' | 'Reverted'
  cycle: string
  lines: Line[]
  scheduledFor: number
  availableAt: number
}
type Invoice = { status: 'open' | 'paid' | 'void'; currency: Currency; sum: bigint }
type Cycle = { firstDay: number; status: 'Open' | 'Closed'; released: boolean; settled: boolean }
type Settled = { deducted: bigint; taken: bigint; outcome: string; carried: bigint; writtenOff: bigint }

/** A refusal: status, code and the extra fields of the code. */
class Refusal {
  readonly answer: string
  constructor(...answer: string[]) {
    this.answer = answer.join(' ')
  }
}

const dayMs = 86_400_000
const minuteMs = 60_000
const anchorDay = Date.parse('2024-01-01T00:00:00Z') / dayMs

export type Beginning = {
  settings: Settings
  terms: Record<TierName, Terms>
  /** Of the members. */
  tiers: readonly TierName[]
  now: number
  partner?: string
  names?: Names
}

export class Model {
  now: number
  readonly settings: Settings
  readonly terms: Map<TierName, Terms>
  readonly members = new Map<string, Member>()
  readonly intents = new Map<string, Intent>()
  readonly withdrawals = new Map<string, Withdrawal>()
  readonly runs = new Map<string, Run>()
  readonly cycles = new Map<string, Cycle>()
  readonly invoices = new Map<string, Invoice>()
  readonly #names: Names
  readonly #partner: string
  readonly #restricted = new Map<string, Set<Restriction>>()
  readonly #balances = new Sums<keyof Balance>()
  readonly #deductions = new Sums<string>()
  readonly #settled = new Map<string, Settled>()
  readonly #accounts = new Sums<
    | ('float' | 'pending' | 'funding' | 'written off' | 'receivable')
    | ('fees' | 'employer fees' | 'invoiced' | 'revenue' | 'operator')
  >()
  readonly #takenOut = new Sums<Currency>()
  readonly #dues = new Map<string, { amount: bigint; received: bigint }>()
  readonly #floors = new Map<Currency, { floor: bigint; isAlerted: boolean }>()
  readonly #bank = new Map<string, string>()
  readonly #events = new Map<string, number>()
  readonly #past: { at: number; balances: Map<string, bigint>; unused: Map<string, bigint> }[] = []
  /** Pay of the cycle that is closing, of the members that nothing has concerned since it ended. */
  readonly #unused = new Sums<string>()
  #isPaused = false

  constructor({ settings, terms, tiers, now, partner = 'partner', names = new Names() }: Beginning) {
    this.#partner = partner
    this.#names = names
    this.now = now
    this.settings = settings
    this.terms = new Map(Object.entries(terms) as [TierName, Terms][])
    for (const tier of tiers) {
      const account = currencyOf[tier] === 'EUR' ? 'EU' : 'A'
      this.members.set(names.next('m'), { status: 'active', tier, account })
    }
    const { cycleDays } = settings
    this.#openCycle(anchorDay + Math.floor((this.#dayOf(now) - anchorDay) / cycleDays) * cycleDays)
  }

  /** Returns the expected response of the program: 'ok' and its content, or the refusal. */
  apply(step: Step): string {
    try {
      return `ok ${this.#perform(step) ?? ''}`.trim()
    } catch (refusal) {
      if (refusal instanceof Refusal) return refusal.answer
      throw refusal
    } finally {
      this.#past.push({ at: this.now, balances: this.#balances.copy(), unused: this.#unused.copy() })
    }
  }

  /** Returns the expected observable state of the program, by name. Zero amounts are omitted. */
  state(): Map<string, string> {
    const seen = new Map<string, string>()
    const see = (key: string, ...words: (string | bigint | number | boolean)[]) => seen.set(key, words.join(' '))
    see('paused', this.#isPaused)
    for (const [name, { status, tier, account }] of this.members) see(`member ${name}`, status, tier, account)
    for (const [name, reasons] of this.#restricted) see(`restricted ${name}`, ...[...reasons].sort())
    for (const [name, { firstDay, status, released, settled }] of this.cycles) {
      see(
        `cycle ${name}`,
        dayText(firstDay),
        dayText(firstDay + this.settings.cycleDays - 1),
        status,
        released,
        settled,
      )
    }
    for (const [name, { status, cycle, scheduledFor }] of this.runs) see(`run ${name}`, status, cycle, scheduledFor)
    for (const [name, i] of this.intents) {
      see(`intent ${name}`, i.status, i.member, i.cycle, i.amount, i.net, i.fee, i.employerFee, i.currency, i.expiresAt)
    }
    for (const [name, { intent, status, balanceAfter, adjustedIn }] of this.withdrawals) {
      const { member, cycle, amount, net, fee, employerFee, currency } = this.#quoted(intent)
      const quoted = [intent, member, cycle, amount, net, fee, employerFee, currency]
      see(`withdrawal ${name}`, status, ...quoted, balanceAfter, adjustedIn ?? 'none')
    }
    for (const [name, { covered }] of this.withdrawals) {
      for (const [cycle, amount] of covered) see(`covered ${name} ${cycle}`, amount)
    }
    for (const [name, { status, currency, sum }] of this.invoices) see(`invoice ${name}`, status, currency, sum)
    for (const [key, { amount, received }] of this.#dues) see(`due ${key}`, amount, received)
    for (const [key, { deducted, taken, outcome, carried, writtenOff }] of this.#settled) {
      see(`settlement ${key}`, deducted, taken, outcome, carried, writtenOff)
    }
    for (const [currency, { floor, isAlerted }] of this.#floors) see(`floor ${currency}`, floor, isAlerted)
    for (const [key, amount] of this.#balances.entries()) see(`balance ${key}`, amount)
    for (const [key, amount] of this.#unused.entries()) see(`balance unused ${key}`, amount)
    for (const [key, amount] of this.#accounts.entries()) see(`account ${key}`, amount)
    for (const [key, amount] of this.#earned()) see(`earned ${key}`, amount)
    for (const [key, count] of this.#events) see(`event ${key}`, count)
    for (const [key, payment] of this.#bank) see(`payment ${key}`, payment)
    return seen
  }

  available(member: string): bigint {
    return this.#balances.of('available', member, this.currencyOf(member))
  }

  currencyOf(member: string): Currency {
    return currencyOf[this.#member(member).tier]
  }

  openCycle(): string {
    return last(this.cycles)
  }

  /** Returns when a cycle is over: at the start of the day after its last day. */
  endOf(cycle: string): number {
    return (this.#cycle(cycle).firstDay + this.settings.cycleDays) * dayMs - this.#offsetMs
  }

  deductions(cycle: string): Line[] {
    return [...this.members.keys()].flatMap(member =>
      currencies
        .map(currency => ({ member, currency, amount: this.#deductions.of(cycle, member, currency) }))
        .filter(({ amount }) => amount !== 0n),
    )
  }

  /** Settlement money that has not arrived. Negative if the operator owes it to the employer. */
  dues(): { cycle: string; currency: Currency; amount: bigint }[] {
    return [...this.#dues].flatMap(([key, { amount, received }]) => {
      const [cycle = '', currency = ''] = key.split(' ')
      return amount === received ? [] : [{ cycle, currency: currency as Currency, amount: amount - received }]
    })
  }

  isRestricted(member: string): boolean {
    return this.#restricted.has(member)
  }

  /** Whether it has this member, intent or withdrawal, or is this partner. */
  has(name: string): boolean {
    return [this.members, this.intents, this.withdrawals].some(all => all.has(name)) || name === this.#partner
  }

  lowerLimit(member: string): bigint {
    return lowestAmount(this.#termsOf(member))
  }

  upperLimit(member: string): bigint {
    return this.#termsOf(member).upperLimit
  }

  #perform(step: Step): string | undefined {
    switch (step.do) {
      case 'upload pay run':
        return this.#upload(step.lines)
      case 'revert pay run':
        return this.#revert(step.run)
      case 'create intent':
        return this.#createIntent(step)
      case 'complete intent':
        return this.#complete(step.intent)
      case 'cancel intent':
        return this.#cancelIntent(step.intent)
      case 'cancel withdrawal':
        return this.#cancelWithdrawal(step.withdrawal)
      case 'report payout':
        return this.reportPayout(step)
      case 'settle':
        return this.#settle(step)
      case 'receive settlement':
        return this.#receive(step)
      case 'set terms':
        this.terms.set(step.tier, step.terms)
        return
      case 'change tier':
        return this.#changeTier(step)
      case 'change account':
        return this.#changeAccount(step)
      case 'offboard member':
        return this.#offboard(step.member)
      case 'reinstate member':
        return this.#reinstate(step.member)
      case 'activate member':
        return this.#activate(step.member)
      case 'release member':
        this.#restricted.delete(step.member)
        return
      case 'fund float':
        this.move(step)
        return
      case 'withdraw from float':
        if (step.amount > this.free(step.currency)) throw new Refusal('422', 'UnprocessableEntity')
        this.move({ ...step, amount: -step.amount })
        return
      case 'withdraw revenue':
        return this.#withdrawRevenue(step)
      case 'issue invoice':
        return this.#issueInvoice(step.currency)
      case 'pay invoice':
        return this.#payInvoice(step.invoice)
      case 'reopen invoice':
        return this.#reopenInvoice(step.invoice)
      case 'void invoice':
        return this.#voidInvoice(step.invoice)
      case 'set floor':
        return this.#setFloor(step)
      case 'pause':
        this.#isPaused = true
        return
      case 'resume':
        this.#isPaused = false
        return
      case 'fold float changes':
        return
      case 'make pay runs available':
        this.#makeDueAvailable()
        return
      case 'expire intents':
        this.#expire()
        return
      case 'submit withdrawals':
        for (const { name } of this.submitDue()) this.#submitToBank(name, step.answer)
        return
      case 'poll withdrawals':
        this.#poll(step.answer)
        return
      case 'close cycles':
        do this.#release(Infinity)
        while (this.#end())
        return
      case 'begin to close':
        this.#end()
        this.#release(step.members)
        return
      case 'watch floats':
        for (const currency of this.#floors.keys()) this.#updateLowAlert(currency)
        return
      case 'read balance':
        return this.#readBalance(step.member)
      case 'read deductions':
        this.#refuseClosing(step.cycle)
        return this.deductions(step.cycle)
          .map(({ member, currency, amount }) => `${member} ${currency} ${amount}`)
          .join(', ')
      case 'read statement':
        return this.#readStatement(step)
      default:
        return step satisfies never
    }
  }

  // Pay runs. The available balance is never below zero: the rest of a correction is owed, and the next pay repays it first.

  #upload(lines: Line[]): string {
    const isPaid = (member: string) => (this.members.get(member)?.status ?? 'inactive') !== 'inactive'
    const wrong = lines.flatMap(({ member, currency }, at) =>
      isPaid(member) && currency !== this.currencyOf(member) ? [`BodyValidation payDetails.${at}.money.currency`] : [],
    )
    if (wrong.length > 0) throw new Refusal('400', wrong.join(', '))
    const unpayable = new Set(lines.map(({ member }) => member).filter(member => !isPaid(member)))
    if (unpayable.size > 0) {
      throw new Refusal('400', [...unpayable].map(member => `MemberNotEligible ${member}`).join(', '))
    }
    const scheduledFor = this.now + this.settings.graceMinutes * minuteMs
    const name = this.#names.next('r')
    const run: Run = { status: 'Scheduled', cycle: this.openCycle(), lines, scheduledFor, availableAt: 0 }
    this.runs.set(name, run)
    this.#emit('pay_run.scheduled', name)
    if (this.settings.graceMinutes === 0) this.#makeAvailable(name, run)
    return name
  }

  #makeDueAvailable(): void {
    const due = [...this.runs].filter(([, run]) => run.status === 'Scheduled' && run.scheduledFor <= this.now)
    for (const [name, run] of due.sort(([, a], [, b]) => a.scheduledFor - b.scheduledFor)) {
      this.#makeAvailable(name, run)
    }
  }

  #makeAvailable(name: string, run: Run): void {
    for (const line of run.lines) this.#pay(line)
    Object.assign(run, { status: 'Available', availableAt: this.now })
    this.#emit('pay_run.available', name)
  }

  #revert(name: string): string {
    const run = this.runs.get(name)
    if (run === undefined) throw new Refusal('404', 'NotFound')
    if (run.status === 'Reverted') return 'Reverted'
    if (run.cycle !== this.openCycle()) throw new Refusal('409', 'Conflict')
    if (run.status === 'Available') {
      for (const line of run.lines) this.#pay({ ...line, amount: -line.amount })
    }
    run.status = 'Reverted'
    this.#emit('pay_run.reverted', name)
    return 'Reverted'
  }

  #pay({ member, currency, amount }: Line): void {
    const balance = (name: keyof Balance) => this.#balances.of(name, member, currency)
    if (amount > 0n) {
      const repaid = min(amount, balance('owed'))
      if (amount > repaid) this.#releaseOf(member, currency)
      this.#balances.add(-repaid, 'owed', member, currency)
      this.#balances.add(amount - repaid, 'available', member, currency)
      this.#deductions.add(repaid, this.openCycle(), member, currency)
    } else {
      const taken = min(-amount, balance('available'))
      this.#balances.add(-taken, 'available', member, currency)
      this.#balances.add(-amount - taken, 'owed', member, currency)
      this.#deductions.add(amount + taken, this.openCycle(), member, currency)
    }
  }

  // Intents and withdrawals.

  #createIntent({ member: name, amount, currency }: { member: string; amount: bigint; currency: Currency }): string {
    const member = this.members.get(name)
    if (member === undefined) throw new Refusal('404', 'MemberNotFound', name)
    if (currency !== this.currencyOf(name)) throw new Refusal('400', 'BodyValidation', 'amount.currency')
    this.#refuse(name, amount)
    const terms = this.#termsOf(name)
    const fee = feeOf(terms, amount)
    const memberFee = terms.feePayer === 'member' ? fee : 0n
    const intent = this.#names.next('i')
    this.intents.set(intent, {
      ...{ status: 'pending', member: name, cycle: this.openCycle(), currency, amount },
      ...{ net: amount - memberFee, fee: memberFee, employerFee: fee - memberFee, account: member.account },
      expiresAt: this.now + this.settings.intentMinutes * minuteMs,
    })
    this.#emit('intent.created', intent)
    return intent
  }

  // All reasons to refuse a withdrawal, in the order of the table of errors.
  #refuse(name: string, amount: bigint): void {
    const { status, account } = this.#member(name)
    const currency = this.currencyOf(name)
    const terms = this.#termsOf(name)
    if (this.#isPaused || this.#isLow(currency)) throw new Refusal('422', 'UnprocessableEntity', 'after 300')
    const ineligible = new Refusal('422', 'MemberNotEligible', name)
    const restrictions = this.#restricted.get(name)
    if (status !== 'active' || restrictions?.has('review')) throw ineligible
    const counted = [...this.withdrawals.values()].filter(
      withdrawal =>
        this.#quoted(withdrawal.intent).member === name && ['held', 'submitted', 'paid'].includes(withdrawal.status),
    )
    const today = counted.filter(({ createdAt }) => this.#dayOf(createdAt) === this.#dayOf(this.now))
    if (today.length >= (terms.withdrawalsPerDay ?? Infinity)) throw ineligible
    const thisCycle = counted.filter(({ intent }) => this.#quoted(intent).cycle === this.openCycle())
    if (thisCycle.length >= (terms.withdrawalsPerCycle ?? Infinity)) throw ineligible
    const isRefused = restrictions?.has('account') ?? false
    if (account === 'none' || account === 'failing' || isRefused) throw new Refusal('422', 'BankAccountInvalid')
    const lower = lowestAmount(terms)
    if (amount < lower) throw new Refusal('422', 'AmountBelowLowerLimit', `${lower} ${currency}`)
    if (amount > terms.upperLimit) {
      throw new Refusal('422', 'AmountAboveUpperLimit', `${terms.upperLimit} ${currency}`)
    }
    if (amount > this.available(name)) throw new Refusal('422', 'MemberInsufficientFunds', name)
  }

  #complete(name: string): string {
    const intent = this.intents.get(name)
    if (intent === undefined) throw new Refusal('404', 'NotFound')
    if (intent.status === 'completed') {
      return [...this.withdrawals].find(([, withdrawal]) => withdrawal.intent === name)?.[0] ?? 'no withdrawal'
    }
    const { member, currency, amount, net, fee, employerFee } = intent
    const isOutdated =
      this.#statusNow(intent) !== 'pending' ||
      intent.cycle !== this.openCycle() ||
      intent.account !== this.#member(member).account ||
      currency !== this.currencyOf(member)
    if (isOutdated) throw new Refusal('409', 'Conflict')
    this.#refuse(member, amount)
    const balanceAfter = this.available(member) - amount
    const withdrawal = this.#names.next('w')
    this.withdrawals.set(withdrawal, {
      ...{ status: 'held', intent: name, adjustedIn: null, balanceAfter, createdAt: this.now },
      dueAt: this.now + this.settings.holdSeconds * 1_000,
      ...{ uncovered: fee, feeDueIn: intent.cycle, covered: new Map() },
    })
    intent.status = 'completed'
    this.#balances.add(-amount, 'available', member, currency)
    this.#deductions.add(amount, intent.cycle, member, currency)
    this.#accounts.add(net, 'pending', currency)
    this.#accounts.add(fee + employerFee, 'fees', currency)
    this.#accounts.add(employerFee, 'employer fees', currency)
    this.#emit('intent.completed', name)
    this.#emit('withdrawal.held', withdrawal)
    if (this.#isLow(currency)) this.#updateLowAlert(currency)
    return withdrawal
  }

  #cancelIntent(name: string): string {
    const intent = this.intents.get(name)
    if (intent === undefined) throw new Refusal('404', 'NotFound')
    const status = this.#statusNow(intent)
    if (status === 'cancelled') return 'cancelled'
    if (status !== 'pending') throw new Refusal('409', 'Conflict')
    intent.status = 'cancelled'
    this.#emit('intent.cancelled', name)
    return 'cancelled'
  }

  #expire(): void {
    for (const [name, intent] of this.intents) {
      if (intent.status === this.#statusNow(intent)) continue
      intent.status = 'expired'
      this.#emit('intent.expired', name)
    }
  }

  #statusNow({ status, expiresAt }: Intent): Intent['status'] {
    return status === 'pending' && expiresAt <= this.now ? 'expired' : status
  }

  #cancelWithdrawal(name: string): undefined {
    const withdrawal = this.withdrawals.get(name)
    if (withdrawal === undefined) throw new Refusal('404', 'NotFound')
    if (withdrawal.status === 'cancelled') return
    if (withdrawal.status !== 'held') throw new Refusal('409', 'Conflict')
    this.#transition(name, 'cancelled')
  }

  /** Submits the due withdrawals. @returns their names, and the net amounts that the bank is asked to pay */
  submitDue(): { name: string; member: string; net: bigint }[] {
    const due = [...this.withdrawals].filter(([, { status, dueAt }]) => status === 'held' && dueAt <= this.now)
    for (const [name] of due) this.#transition(name, 'submitted')
    return due.map(([name, { intent }]) => ({ name, ...this.#quoted(intent) }))
  }

  // The clock has advanced by more than the longest wait, so that every submitted withdrawal is polled.
  #poll(answer: BankAnswer): void {
    for (const [name, { status }] of this.withdrawals) {
      if (status !== 'submitted') continue
      // A payment unknown to the bank is submitted again, this time successfully.
      if (answer === 'unknown') this.#submitToBank(name, 'pending')
      else this.#applyAnswer(name, answer)
    }
  }

  #submitToBank(name: string, answer: BankAnswer): void {
    if (answer === 'silent' || answer === 'unknown') return
    const { net, currency } = this.#quoted(this.#withdrawal(name).intent)
    this.#bank.set(name, `${net} ${currency}`)
    this.#applyAnswer(name, answer)
  }

  #applyAnswer(withdrawal: string, answer: BankAnswer): void {
    if (answer === 'paid' || answer === 'failed' || answer === 'returned') {
      this.reportPayout({ withdrawal, outcome: answer })
    }
  }

  reportPayout({
    withdrawal: name,
    outcome,
    restriction = null,
  }: {
    withdrawal: string
    outcome: Outcome
    restriction?: Restriction | null
  }): string {
    const withdrawal = this.withdrawals.get(name)
    if (withdrawal === undefined) throw new Refusal('404', 'NotFound')
    const { status } = withdrawal
    // A returned payment has been paid before, even if the bank never reported that.
    if (status === 'submitted' && outcome === 'returned') this.#transition(name, 'paid')
    const isNews = withdrawal.status === 'submitted' || (withdrawal.status === 'paid' && outcome === 'returned')
    if (isNews) this.#transition(name, outcome)
    if (isNews && restriction !== null && outcome !== 'paid') {
      const { member } = this.#quoted(withdrawal.intent)
      this.#restricted.set(member, new Set([...(this.#restricted.get(member) ?? []), restriction]))
    }
    if (isNews) return 'changed'
    const isKnown = status === outcome || (status === 'returned' && outcome === 'paid')
    return isKnown ? 'known' : 'contradiction'
  }

  // Performs a transition that the caller has checked to be allowed.
  #transition(name: string, to: Withdrawal['status']): void {
    const withdrawal = this.#withdrawal(name)
    const { member, currency, cycle, amount, net, fee, employerFee } = this.#quoted(withdrawal.intent)
    withdrawal.status = to
    this.#emit(`withdrawal.${to}`, name)
    if (to === 'submitted') return
    if (to === 'returned') this.#accounts.add(net, 'float', currency)
    else this.#accounts.add(-net, 'pending', currency)
    if (to === 'paid') {
      this.#accounts.add(-net, 'float', currency)
      return
    }
    this.#accounts.add(-fee - employerFee, 'fees', currency)
    this.#accounts.add(-employerFee, 'employer fees', currency)
    const collected = this.#collected(currency)
    withdrawal.uncovered = 0n
    withdrawal.covered.clear()
    this.#book(this.#collected(currency) - collected, currency)
    this.#releaseOf(member, currency)
    this.#balances.add(amount, 'available', member, currency)
    const open = this.openCycle()
    if (open !== cycle) withdrawal.adjustedIn = open
    this.#deductions.add(-amount, open, member, currency)
  }

  // Pay cycles and settlement.

  #openCycle(firstDay: number): void {
    const name = this.#names.next('c')
    this.cycles.set(name, { firstDay, status: 'Open', released: false, settled: false })
    this.#emit('pay_cycle.opened', name)
  }

  // The pay of the ended cycle is no longer available, although it is released member by member.
  #end(): boolean {
    const ending = this.openCycle()
    if (this.now < this.endOf(ending) || this.#closing() !== undefined) return false
    for (const member of this.members.keys()) {
      for (const currency of currencies) {
        const unused = this.#balances.of('available', member, currency)
        this.#balances.add(-unused, 'available', member, currency)
        this.#unused.add(unused, member, currency)
      }
    }
    const cycle = this.#cycle(ending)
    cycle.status = 'Closed'
    this.#openCycle(cycle.firstDay + this.settings.cycleDays)
    for (const run of this.runs.values()) {
      if (run.status === 'Scheduled' && run.cycle === ending) run.cycle = this.openCycle()
    }
    return true
  }

  #release(countMax: number): void {
    const closing = this.#closing()
    if (closing === undefined) return
    const unused = new Set(this.#unused.entries().map(([key]) => key.split(' ')[0] ?? ''))
    for (const member of [...unused].sort().slice(0, countMax)) {
      for (const currency of currencies) this.#releaseOf(member, currency)
    }
    // The program looks for further members first.
    if (unused.size >= countMax) return
    this.#cycle(closing).released = true
    this.#emit('pay_cycle.closed', closing)
  }

  #releaseOf(member: string, currency: Currency): void {
    this.#unused.add(-this.#unused.of(member, currency), member, currency)
  }

  #closing(): string | undefined {
    return [...this.cycles].find(([, { status, released }]) => status === 'Closed' && !released)?.[0]
  }

  #refuseClosing(cycle: string): void {
    if (cycle === this.#closing()) throw new Refusal('409', 'Conflict', 'after 5')
  }

  #settle({ cycle: name, lines }: { cycle: string; lines: Line[] }): string {
    const cycle = this.cycles.get(name)
    if (cycle === undefined) throw new Refusal('404', 'NotFound')
    this.#refuseClosing(name)
    if (cycle.status === 'Open' || cycle.settled) throw new Refusal('409', 'Conflict')
    const invalid = this.#invalidLinesOf(name, lines)
    if (invalid.length > 0) throw new Refusal('400', invalid.map(at => `BodyValidation ${at}`).join(', '))
    const deductions = this.deductions(name)
    const unknown = lines
      .filter(line => !deductions.some(each => isSame(each, line)))
      .map(line => ({ ...line, amount: 0n }))
    for (const { member, currency, amount: deducted } of [...deductions, ...unknown]) {
      const taken = lines.find(line => isSame(line, { member, currency }))?.amount ?? 0n
      const missing = deducted - taken
      const writtenOff = missing > 0n && this.settings.shortfallPolicy === 'write_off' ? missing : 0n
      const outcome = deducted === 0n ? 'unknown' : missing === 0n ? 'matched' : missing > 0n ? 'short' : 'over'
      this.#settled.set(`${name} ${member} ${currency}`, {
        ...{ deducted, taken, outcome, carried: missing - writtenOff, writtenOff },
      })
      this.#accounts.add(taken, this.settings.reportsArrivals ? 'receivable' : 'float', currency)
      this.#accounts.add(writtenOff, 'written off', currency)
      this.#deductions.add(missing - writtenOff, this.openCycle(), member, currency)
    }
    cycle.settled = true
    for (const currency of currencies) this.#coverFees(name, currency)
    this.#emit('pay_cycle.settled', name)
    const outcomes = [...this.#settled].filter(([key]) => key.startsWith(`${name} `)).map(([, { outcome }]) => outcome)
    return ['matched', 'short', 'over', 'unknown']
      .map(outcome => `${outcome} ${outcomes.filter(each => each === outcome).length}`)
      .join(' ')
  }

  #receive({ cycle, amount, currency }: { cycle: string; amount: bigint; currency: Currency }): undefined {
    const due = this.#dues.get(`${cycle} ${currency}`)
    const missing = due === undefined ? 0n : due.amount - due.received
    const isWithin = amount > 0n ? amount <= missing : amount < 0n && amount >= missing
    if (due === undefined || !isWithin) throw new Refusal('409', 'Conflict')
    const collected = this.#collected(currency)
    due.received += amount
    this.#accounts.add(amount, 'float', currency)
    this.#accounts.add(-amount, 'receivable', currency)
    this.#book(this.#collected(currency) - collected, currency)
  }

  // The operator's money. A shortfall, and what the member owes, is taken from the advances first, then from the latest fee.

  #coverFees(cycle: string, currency: Currency): void {
    const collected = this.#collected(currency)
    for (const member of this.members.keys()) {
      const due = [...this.withdrawals.values()].filter(({ intent, uncovered, feeDueIn }) => {
        const quoted = this.#quoted(intent)
        return quoted.member === member && quoted.currency === currency && uncovered > 0n && feeDueIn === cycle
      })
      const line = this.#settled.get(`${cycle} ${member} ${currency}`)
      const fees = due.reduce((sum, { uncovered }) => sum + uncovered, 0n)
      const owed = this.#balances.of('owed', member, currency)
      const deducted = line?.deducted ?? 0n
      const advance = max(0n, deducted + owed - fees)
      let lost = min(fees, max(0n, max(0n, deducted - (line?.taken ?? 0n)) + owed - advance))
      let carried = lost - min(lost, line?.writtenOff ?? 0n)
      for (const withdrawal of due.toReversed()) {
        const lostOfThis = min(lost, withdrawal.uncovered)
        const carriedOfThis = min(carried, lostOfThis)
        const coveredOfThis = withdrawal.uncovered - lostOfThis
        if (coveredOfThis > 0n) withdrawal.covered.set(cycle, coveredOfThis)
        withdrawal.uncovered = carriedOfThis
        withdrawal.feeDueIn = this.openCycle()
        lost -= lostOfThis
        carried -= carriedOfThis
      }
    }
    if (this.settings.reportsArrivals) {
      const lines = [...this.#settled].filter(([key]) => key.startsWith(`${cycle} `) && key.endsWith(` ${currency}`))
      const amount = lines.reduce((sum, [, { taken }]) => sum + taken, 0n)
      if (amount !== 0n) this.#dues.set(`${cycle} ${currency}`, { amount, received: 0n })
    }
    this.#book(this.#collected(currency) - collected, currency)
  }

  // The collected fees: those covered by a settlement, but limited to the settlement money that has arrived.
  #collected(currency: Currency): bigint {
    let sum = 0n
    for (const cycle of this.cycles.keys()) {
      let covered = 0n
      for (const { intent, covered: parts } of this.withdrawals.values()) {
        if (this.#quoted(intent).currency === currency) covered += parts.get(cycle) ?? 0n
      }
      const due = this.#dues.get(`${cycle} ${currency}`)
      sum += due !== undefined && due.received < due.amount ? min(covered, due.received) : covered
    }
    return sum
  }

  #book(amount: bigint, currency: Currency): void {
    this.#accounts.add(amount, 'revenue', currency)
    this.#accounts.add(-amount, 'fees', currency)
  }

  /** Collected fees that the operator has not taken out of the float. */
  revenueInFloat(currency: Currency): bigint {
    return this.#collected(currency) - this.#takenOut.of(currency)
  }

  #withdrawRevenue({ amount, currency }: { amount: bigint; currency: Currency }): undefined {
    if (amount < 1n) throw new Refusal('409', 'Conflict')
    const free = this.free(currency) - (this.#floors.get(currency)?.floor ?? 0n)
    if (amount > this.revenueInFloat(currency) || amount > free) throw new Refusal('422', 'UnprocessableEntity')
    this.#takenOut.add(amount, currency)
    this.#accounts.add(-amount, 'float', currency)
    this.#accounts.add(amount, 'operator', currency)
    this.#updateLowAlert(currency)
  }

  // The employers' fees not yet invoiced, less those given back since.
  #issueInvoice(currency: Currency): string {
    const sum = this.#accounts.of('employer fees', currency)
    if (sum <= 0n) throw new Refusal('409', 'Conflict')
    const name = this.#names.next('v')
    this.invoices.set(name, { status: 'open', currency, sum })
    this.#accounts.add(-sum, 'employer fees', currency)
    this.#accounts.add(sum, 'invoiced', currency)
    return name
  }

  #payInvoice(name: string): undefined {
    const invoice = this.#invoice(name)
    if (invoice.status === 'void') throw new Refusal('409', 'Conflict')
    if (invoice.status === 'open') this.#bookPaid(invoice, 1n)
    invoice.status = 'paid'
  }

  #reopenInvoice(name: string): undefined {
    const invoice = this.#invoice(name)
    if (invoice.status !== 'paid') throw new Refusal('409', 'Conflict')
    this.#bookPaid(invoice, -1n)
    invoice.status = 'open'
  }

  #bookPaid({ sum, currency }: Invoice, sign: 1n | -1n): void {
    this.#accounts.add(-sign * sum, 'invoiced', currency)
    this.#accounts.add(sign * sum, 'operator', currency)
    this.#book(sign * sum, currency)
  }

  #voidInvoice(name: string): undefined {
    const invoice = this.#invoice(name)
    const { currency, sum } = invoice
    const latest = [...this.invoices].findLast(([, each]) => each.currency === currency && each.status !== 'void')
    if (invoice.status !== 'open' || latest?.[0] !== name) throw new Refusal('409', 'Conflict')
    this.#accounts.add(-sum, 'invoiced', currency)
    this.#accounts.add(sum, 'employer fees', currency)
    invoice.status = 'void'
  }

  #invoice(name: string): Invoice {
    const invoice = this.invoices.get(name)
    if (invoice === undefined) throw new Refusal('404', 'NotFound')
    return invoice
  }

  // Returns the indexes of the invalid lines.
  #invalidLinesOf(cycle: string, lines: Line[]): number[] {
    return lines.flatMap((line, at) => {
      const { member, currency, amount } = line
      const isMember = this.members.has(member)
      const deduction = this.#deductions.of(cycle, member, currency)
      const hasOther = currencies.some(other => this.#deductions.of(cycle, member, other) !== 0n)
      const isForeign = isMember && deduction === 0n && (hasOther || currency !== this.currencyOf(member))
      const isNegative = amount < 0n && deduction >= 0n
      const isRepeated = lines.slice(0, at).some(earlier => isSame(earlier, line))
      return !isMember || isForeign || isNegative || isRepeated ? [at] : []
    })
  }

  // The ledger's earned pay per cycle: zero once the cycle is settled, and still including available balances.
  #earned(): [string, bigint][] {
    const earned = new Sums<string>()
    for (const [key, amount] of this.#deductions.entries()) {
      const [cycle = ''] = key.split(' ')
      if (!this.#cycle(cycle).settled) earned.add(amount, key)
    }
    for (const [key, amount] of this.#balances.entries()) {
      const [name, member, currency] = key.split(' ')
      if (name === 'available') earned.add(amount, this.openCycle(), `${member}`, `${currency}`)
    }
    for (const [key, amount] of this.#unused.entries()) earned.add(amount, `${this.#closing()}`, key)
    return earned.entries()
  }

  // Members.

  #changeTier({ member: name, tier }: { member: string; tier: TierName }): undefined {
    const member = this.#member(name)
    const currency = currencyOf[member.tier]
    const hasMoney =
      this.#balances.of('available', name, currency) > 0n ||
      this.#balances.of('owed', name, currency) > 0n ||
      [...this.runs.values()].some(
        run =>
          run.status === 'Scheduled' &&
          run.lines.some(line => line.member === name && line.currency === currency && line.amount !== 0n),
      ) ||
      [...this.withdrawals.values()].some(({ status, intent }) => {
        const quoted = this.#quoted(intent)
        return ['held', 'submitted'].includes(status) && quoted.member === name && quoted.currency === currency
      })
    if (currencyOf[tier] !== currency && hasMoney) throw new Refusal('400', 'InvalidUpdateMemberPayload', name)
    if (tier !== member.tier) this.#emit('member.updated', name)
    member.tier = tier
  }

  #changeAccount({ member: name, account }: { member: string; account: AccountName }): undefined {
    const member = this.#member(name)
    if (account !== member.account) this.#emit('member.updated', name)
    member.account = account
  }

  #offboard(name: string): undefined {
    const member = this.#member(name)
    if (member.status !== 'inactive') this.#emit('member.removed', name)
    member.status = 'inactive'
  }

  #reinstate(name: string): undefined {
    const member = this.#member(name)
    if (member.status !== 'inactive') return
    this.#emit('member.reinstated', name)
    if (this.settings.autoActivate) this.#emit('member.activated', name)
    member.status = this.settings.autoActivate ? 'active' : 'invited'
  }

  #activate(name: string): undefined {
    const member = this.#member(name)
    if (member.status === 'inactive') throw new Refusal('409', 'Conflict')
    if (member.status === 'invited') this.#emit('member.activated', name)
    member.status = 'active'
  }

  // The float.

  /** Moves money into the float or, if negative, out of it. */
  move({ amount, currency }: { amount: bigint; currency: Currency }): void {
    this.#accounts.add(amount, 'float', currency)
    this.#accounts.add(amount, 'funding', currency)
    this.#updateLowAlert(currency)
  }

  #setFloor({ floor, currency }: { floor: bigint | null; currency: Currency }): undefined {
    if (floor === null) {
      this.#floors.delete(currency)
      return
    }
    this.#floors.set(currency, { floor, isAlerted: this.#floors.get(currency)?.isAlerted ?? false })
    this.#updateLowAlert(currency)
  }

  #updateLowAlert(currency: Currency): void {
    const limit = this.#floors.get(currency)
    if (limit === undefined) return
    const isLow = this.#isLow(currency)
    if (isLow && !limit.isAlerted) this.#emit('float.low', this.#partner)
    limit.isAlerted = isLow
  }

  #isLow(currency: Currency): boolean {
    const limit = this.#floors.get(currency)
    return limit !== undefined && this.free(currency) < limit.floor
  }

  free(currency: Currency): bigint {
    return this.#accounts.of('float', currency) - this.#accounts.of('pending', currency)
  }

  // Reading.

  #readBalance(name: string): string {
    const currency = this.currencyOf(name)
    const paidAt = [...this.runs.values()]
      .filter(({ status, cycle }) => status === 'Available' && cycle === this.openCycle())
      .map(({ availableAt }) => availableAt)
    const lastPaid = paidAt.length === 0 ? 'never' : new Date(Math.max(...paidAt)).toISOString()
    const isUnavailable = this.#isPaused || this.#isLow(currency)
    return [this.available(name), currency, this.openCycle(), lastPaid, isUnavailable].join(' ')
  }

  #readStatement({ member, currency, asOf }: { member: string; currency: Currency; asOf: number }): string {
    const { balances, unused } = this.#past.findLast(({ at }) => at <= asOf) ?? {}
    const then = (name: keyof Balance) => balances?.get(`${name} ${member} ${currency}`) ?? 0n
    // Unused pay is in the books until it is released.
    const available = then('available') + (unused?.get(`${member} ${currency}`) ?? 0n)
    return `available ${available} owed ${then('owed')}`
  }

  /** Returns the instants of the steps so far. */
  instants(): number[] {
    return this.#past.map(({ at }) => at)
  }

  #emit(type: string, resource: string): void {
    const key = `${type} ${resource}`
    this.#events.set(key, (this.#events.get(key) ?? 0) + 1)
  }

  get #offsetMs(): number {
    return this.settings.timeZone.offsetMinutes * minuteMs
  }

  #dayOf(instant: number): number {
    return Math.floor((instant + this.#offsetMs) / dayMs)
  }

  #termsOf(member: string): Terms {
    return present(this.terms.get(this.#member(member).tier))
  }

  #member(name: string): Member {
    return present(this.members.get(name))
  }

  #cycle(name: string): Cycle {
    return present(this.cycles.get(name))
  }

  #withdrawal(name: string): Withdrawal {
    return present(this.withdrawals.get(name))
  }

  #quoted(intent: string): Intent {
    return present(this.intents.get(intent))
  }
}

/** Sums by name. A sum of zero is removed. */
class Sums<First extends string> {
  readonly #amounts = new Map<string, bigint>()

  add(amount: bigint, first: First, ...rest: string[]): void {
    const key = [first, ...rest].join(' ')
    const sum = (this.#amounts.get(key) ?? 0n) + amount
    if (sum === 0n) this.#amounts.delete(key)
    else this.#amounts.set(key, sum)
  }

  of(first: First, ...rest: string[]): bigint {
    return this.#amounts.get([first, ...rest].join(' ')) ?? 0n
  }

  entries(): [string, bigint][] {
    return [...this.#amounts]
  }

  copy(): Map<string, bigint> {
    return new Map(this.#amounts)
  }
}

function feeOf({ feeFixed, feeBps, feeMin, feeMax }: Terms, amount: bigint): bigint {
  let fee = feeFixed + (amount * BigInt(feeBps)) / 10_000n
  if (feeMin !== null && fee < feeMin) fee = feeMin
  if (feeMax !== null && fee > feeMax) fee = feeMax
  return fee
}

// The first amount from the lower limit up that leaves something after the fee.
function lowestAmount(terms: Terms): bigint {
  let amount = terms.lowerLimit
  while (terms.feePayer === 'member' && feeOf(terms, amount) >= amount) amount += 1n
  return amount
}

function isSame(a: Pick<Line, 'member' | 'currency'>, b: Pick<Line, 'member' | 'currency'>): boolean {
  return a.member === b.member && a.currency === b.currency
}

function dayText(day: number): string {
  return new Date(day * dayMs).toISOString().slice(0, 10)
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

export function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}

function last(named: ReadonlyMap<string, unknown>): string {
  return present([...named.keys()].at(-1))
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('The model lost track of an entity')
  return value
}
