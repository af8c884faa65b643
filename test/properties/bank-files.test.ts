import fc from 'fast-check'
import { afterAll, beforeAll, test } from 'vitest'
import { extent } from '../runner/extent.ts'
import { checkRuns, choose, type Generated, is, often, Run, rarely } from './checked.ts'
import {
  type BankFile,
  type Batch,
  type Booking,
  type Code,
  type Decision,
  debtorOf,
  type FileForm,
  type FileRails,
  ofMember,
  partners,
  type Statement,
} from './file-rails.ts'
import { FileRailsProgram, settings, terms, tiers } from './file-rails-program.ts'
import { currencyOfRail, opening, type Step, World } from './world.ts'

// PROPERTY_RUNS=20000 for a long search; PROPERTY_SEED and PROPERTY_PATH, printed by a failure, to reproduce it.
const { PROPERTY_RUNS, PROPERTY_SEED, PROPERTY_PATH } = process.env
const runs = Number(PROPERTY_RUNS ?? extent({ short: 6, long: 140 }))
// Fixed, so that the checks of a change are reproducible; PROPERTY_SEED=$RANDOM searches elsewhere.
const seed = Number(PROPERTY_SEED ?? 2026)

// A Monday. The runs end before the clocks change, and before Easter.
const startAt = new Date('2026-01-12T09:00:00.000Z')
const endAt = new Date('2026-03-20T09:00:00.000Z')

let program: FileRailsProgram
beforeAll(async () => {
  program = await FileRailsProgram.start(startAt)
})
afterAll(() => program.stop())

const timeoutMs = 120_000 + runs * 3_000

test(`any interleaving of files, duplicates, losses and late returns ends with each withdrawal in one state and the books in balance, in ${runs} runs`, {
  timeout: timeoutMs,
}, async () => {
  const commands = fc.noBias(fc.array(command, { minLength: 1, maxLength: 20, size: 'max' }))
  await checkRuns(fc.asyncProperty(commands, runCommands), {
    ...{ runs, seed, path: PROPERTY_PATH, file: 'test/properties/bank-files.test.ts', timeoutMs },
  })
})

async function runCommands(commands: Command[]): Promise<void> {
  await program.reset()
  program.now = startAt
  const idOf = (name: string) => program.idOf(name)
  const world = new World({ settings, terms, tiers, now: startAt.getTime(), idOf })
  const { bank: model } = world
  const bank = new Bank(model)
  const run = new Run(world, program)
  const perform = async (step: Step) => {
    // Each step has a separate instant, so that due work has one order.
    world.now += 1
    await run.perform(step)
    const delivered = [...model.batches.values()].filter(({ isDelivered }) => isDelivered)
    const orders = delivered.flatMap(({ name }) => model.paymentsOf(name).map(each => `${each.name} ${each.net}`))
    if (orders.sort().join() !== program.orders().join())
      run.fail([`the banks have the orders ${program.orders().join()}, but should have ${orders.join()}`])
  }
  for (const step of opening({ available: 100_000_000n })) await perform(step)
  for (const command of commands) for (const step of stepsOf(command, { world, model, bank })) await perform(step)
  for (const step of theEnd({ world, model, bank })) await perform(step)
  const open = world.unfinished()
  if (open.length > 0) run.fail([`${open.join()} never ended`])
  await run.end()
}

/** The files that the bank has written, in terms of the model. */
class Bank {
  readonly files: BankFile[] = []
  readonly #model: FileRails
  readonly #bookedOn = new Map<string, string>()
  #serial = 0

  constructor(model: FileRails) {
    this.#model = model
  }

  next(letter: string): string {
    return `${letter}${++this.#serial}`
  }

  /** The booking of a reference, which the bank repeats unchanged. */
  booking(reference: string): Booking {
    const bookedOn = this.#bookedOn.get(reference) ?? new Date(this.#model.now).toISOString().slice(0, 10)
    this.#bookedOn.set(reference, bookedOn)
    return { bank: reference, bookedOn }
  }

  write(file: Omit<BankFile, 'message' | 'copy'>): BankFile {
    const written = { ...file, message: this.next('M'), copy: 0 }
    this.files.push(written)
    return written
  }

  /** The batches whose files the bank has or may be missing, except those in flight. */
  batches(): string[] {
    return [...this.#model.batches.values()]
      .filter(({ claims, isDelivered }) => isDelivered || claims === 0)
      .map(({ name }) => name)
  }

  delivered(): string[] {
    return [...this.#model.batches.values()].filter(({ isDelivered }) => isDelivered).map(({ name }) => name)
  }
}

// Commands are generated before anything exists, so they refer to batches, payments, … relatively: the newest entity, the one before.

const which = fc.nat({ max: 5 })
const amount = fc.oneof(
  { weight: 5, arbitrary: fc.bigInt({ min: 1_000n, max: 9_000n }) },
  { weight: 1, arbitrary: fc.bigInt({ min: 9_001n, max: 20_000n }) },
)
const code = is<Code>('AC04', 'MS03', 'AG01', null, 'AM04', 'AM05', 'FF01')
const says = fc.record({
  what: is('paid', 'paid', 'paid', 'failed', 'returned', 'pending', 'silent', 'silent'),
  ...{ code, isWrong: rarely(12) },
})
const reference = is(null, 0, 1)
const answer = often(22, {
  do: is('answer'),
  batch: which,
  form: is<FileForm>('pain.002', 'pain.002', 'camt.054', 'camt.054', 'camt.053', 'arucs'),
  whole: is('none', 'none', 'acknowledged', 'rejected', 'booked', 'booked', 'booked wrongly', 'booked early'),
  // The batch is also debited under another bank reference.
  isTwice: rarely(6),
  ...{
    wholeCode: fc.oneof(code, is('FF01')),
    payments: fc.array(says, { minLength: 1, maxLength: 4 }),
    stranger: rarely(12),
  },
  fault: is('none', 'none', 'none', 'none', 'none', 'none', 'none', 'half', 'other account', 'other currency'),
  sentWith: is('none', 'none', 'killed after delivery'),
  isRead: fc.boolean(),
  // Days until the bank reports the opposite; null if it never does.
  oppositeAfter: is(null, 0, 3),
})
const command = fc.oneof(
  often(8, {
    do: is('withdraw'),
    payments: fc.array(fc.record({ member: fc.nat({ max: 5 }), amount }), { minLength: 1, maxLength: 3 }),
    isSubmitted: fc.boolean(),
  }),
  often(3, { do: is('submit', 'read', 'read', 'poll') }),
  often(3, { do: is('cancel', 'close cycles') }),
  often(5, {
    do: is('send'),
    fault: is('none', 'none', 'none', 'killed before delivery', 'killed after delivery', 'not delivered'),
    isAwaited: fc.boolean(),
  }),
  often(4, { do: is('wait'), hours: is(1, 5, 24, 24, 48, 72) }),
  often(2, { do: is('approve'), batch: which, isByTwo: fc.boolean() }),
  often(2, { do: is('hold', 'let go'), batch: which }),
  often(2, { do: is('remove'), withdrawal: which }),
  answer,
  often(5, {
    ...{ do: is('again'), file: which, isRead: fc.boolean() },
    how: is('same bytes', 'other bytes', 'other message', 'without the fault'),
  }),
  often(5, {
    do: is('money'),
    amount: is(70_000n, 70_000n, 70_000n, -300n),
    ...{ reference: is(null, 0, 0, 1), isRecorded: is('before', 'before', 'after', 'never') },
    ...{ partner: fc.nat({ max: 2 }), isTwice: fc.boolean() },
  }),
  often(7, {
    do: is('decide'),
    exception: which,
    decision: is<Decision['decision']>('ignore', 'give_back', 'give_back', 'attach', 'attach', 'book', 'book'),
    ...{ withdrawal: which, partner: fc.nat({ max: 2 }), reference },
  }),
)
type Command = Generated<typeof command>
type Answer = Command & { do: 'answer' }

type Scene = { world: World; model: FileRails; bank: Bank }

/** Expands a command into steps; each step is performed before the next is generated. */
function* stepsOf(command: Command, scene: Scene): Generator<Step> {
  const { world, model, bank } = scene
  switch (command.do) {
    case 'withdraw':
      for (const { member, amount } of command.payments) yield* withdrawal(world, { member: `m${member}`, amount })
      if (command.isSubmitted) yield submission(world)
      break
    case 'submit':
      yield submission(world)
      break
    case 'read':
      yield { do: 'read reports' }
      break
    case 'cancel': {
      const withdrawal = world.unfinished().at(-1)
      if (withdrawal !== undefined) yield { do: 'cancel withdrawal', withdrawal }
      break
    }
    case 'close cycles':
      wait(world, 24 * settings.cycleDays)
      yield { do: 'close cycles' }
      break
    case 'poll':
      // No payment waits longer than a day for its next poll.
      wait(world, 25)
      yield { do: 'poll withdrawals', answer: 'pending' }
      break
    case 'send':
      if (command.isAwaited) awaitCutOff(world)
      yield { do: 'send', fault: command.fault }
      break
    case 'wait':
      wait(world, command.hours)
      break
    case 'approve': {
      const waiting = [...model.batches.values()].filter(({ status, isClosed }) => status === 'building' && isClosed)
      const batch = chooseMostly(waiting, [...model.batches.values()], command.batch)?.name
      if (batch === undefined) break
      yield { do: 'approve', batch, person: 'Ada' }
      if (command.isByTwo) yield { do: 'approve', batch, person: 'Bob' }
      break
    }
    case 'hold':
    case 'let go': {
      const batch = chooseMostly(unsent(model), [...model.batches.values()], command.batch)
      if (batch !== undefined) yield { do: command.do, batch: batch.name }
      break
    }
    case 'remove': {
      if (unsent(model).length === 0) {
        for (const member of ['m2', 'm3']) yield* withdrawal(world, { member, amount: 3_000n })
        yield submission(world)
      }
      const submitted = [...model.payments.values()]
      const removable = submitted.filter(({ batch, isRemoved }) => unsent(model).includes(batch) && !isRemoved)
      const found = chooseMostly(removable, submitted, command.withdrawal)
      if (found !== undefined) yield { do: 'remove', withdrawal: found.name }
      break
    }
    case 'answer':
      yield* answering(command, scene)
      break
    case 'again': {
      const file = choose(bank.files, command.file)
      if (file === undefined) break
      const again = repeated(file, { how: command.how, bank })
      yield { do: 'import', file: again }
      if (command.isRead) yield { do: 'read reports' }
      break
    }
    case 'money':
      yield* money(command, scene)
      break
    case 'decide': {
      const exception = choose(model.openExceptions(), command.exception)
      if (exception === undefined) break
      yield { do: 'decide', exception, by: decisionOf(command, model) }
      break
    }
    default:
      command satisfies never
  }
}

function* withdrawal(world: World, { member, amount }: { member: string; amount: bigint }): Generator<Step> {
  const currency = currencyOfRail[ofMember(member).rail]
  const asking: Step = { do: 'create intent', member, amount, currency }
  // A member restricted after a bank's answer is refused, and then released.
  if (world.isRestricted(member)) {
    yield asking
    yield { do: 'release member', member }
  }
  if (world.available(member) < amount)
    yield { do: 'upload pay run', lines: [{ member, amount: 1_000_000n, currency }] }
  yield asking
  yield { do: 'complete intent', intent: world.newestIntent() }
}

function submission(world: World): Step {
  // The hold of a withdrawal.
  world.now += 31_000
  return { do: 'submit withdrawals', answer: 'pending' }
}

function wait(world: World, hours: number): void {
  world.now = Math.min(world.now + hours * 3_600_000, Math.max(world.now, endAt.getTime()))
}

/** Moves to the time when the open batches can be sent. */
function awaitCutOff(world: World): void {
  const open = [...world.bank.batches.values()].filter(({ status, isClosed }) => status === 'building' && !isClosed)
  world.now = Math.max(world.now, ...open.map(({ cutOffAt }) => cutOffAt))
}

function unsent(model: FileRails): Batch[] {
  return [...model.batches.values()].filter(({ status }) => status === 'building' || status === 'approved')
}

function* answering(answer: Answer, { world, model, bank }: Scene): Generator<Step> {
  const isForm = (name: string) => (model.batches.get(name)?.rail === 'pounds') === (answer.form === 'arucs')
  if (!bank.delivered().some(isForm)) {
    const payees = answer.form === 'arucs' ? ['m1', 'm5'] : ['m0', 'm4']
    for (const member of [...payees, ...payees]) yield* withdrawal(world, { member, amount: 2_000n })
    yield submission(world)
    awaitCutOff(world)
    yield { do: 'send', fault: answer.sentWith }
  }
  // Now and then about a batch that was not sent.
  const known = answer.batch === 5 ? bank.batches() : bank.delivered()
  const name = choose(known.filter(isForm), answer.batch)
  const batch = name === undefined ? undefined : model.batches.get(name)
  if (batch === undefined) return
  const statements =
    answer.form === 'pain.002'
      ? statuses(answer, model, batch.name)
      : entries(answer, { world, model, bank }, batch.name)
  if (statements.length === 0) return
  if (answer.form.startsWith('camt') && answer.fault === 'other currency')
    statements.push({ says: 'money', amount: -100n, reference: null, ...bank.booking(bank.next('F')) })
  const { rail, debtor } = batch
  // Only an account report names an account and a currency.
  const fault =
    answer.form.startsWith('camt') || answer.fault === 'half' || answer.fault === 'none'
      ? answer.fault
      : ('none' as const)
  yield { do: 'import', file: bank.write({ rail, debtor, form: answer.form, statements, fault }) }
  if (answer.isRead) yield { do: 'read reports' }
  if (answer.form.startsWith('camt') && answer.whole === 'booked early') {
    // The bank first debits the net sum, then reports which payments failed.
    const later = statuses({ ...answer, whole: 'acknowledged', stranger: false }, model, batch.name)
    yield { do: 'import', file: bank.write({ rail, debtor, form: 'pain.002', statements: later, fault: 'none' }) }
    if (answer.isRead) yield { do: 'read reports' }
  }
  const opposite = statements.flatMap(each => oppositeOf(each, { code: answer.wholeCode, bank }))
  if (answer.oppositeAfter === null || opposite.length === 0) return
  wait(world, 24 * answer.oppositeAfter)
  yield { do: 'import', file: bank.write({ rail, debtor, form: answer.form, statements: opposite, fault: 'none' }) }
  if (answer.isRead) yield { do: 'read reports' }
}

/** Turns paid payments into failed or returned ones, and vice versa. */
function oppositeOf(statement: Statement, { code, bank }: { code: Code; bank: Bank }): Statement[] {
  switch (statement.says) {
    case 'batch':
      return [
        {
          ...statement,
          status: statement.status === 'RJCT' ? 'ACTC' : 'RJCT',
          code: statement.status === 'RJCT' ? null : code,
        },
      ]
    case 'status':
      if (statement.status === 'ACSC') return [{ ...statement, status: 'RJCT', code }]
      return [{ ...statement, status: 'ACSC', code: null }]
    case 'entry': {
      const { of, isReturn, amount } = statement
      // ARUCS knows only returns.
      if (isReturn) return []
      const reference = of === 'stranger' ? `R-${statement.bank}` : `R-${of}-${amount}`
      return [{ ...statement, isReturn: true, code, ...bank.booking(reference) }]
    }
    default:
      return []
  }
}

function statuses({ whole, wholeCode, payments, stranger }: Answer, model: FileRails, batch: string): Statement[] {
  const of = stranger ? 'strange batch' : batch
  const status =
    whole === 'acknowledged' ? ('ACTC' as const) : whole === 'rejected' ? ('RJCT' as const) : ('PDNG' as const)
  const states = { paid: 'ACSC', failed: 'RJCT', returned: 'RJCT', pending: 'PDNG' } as const
  const single = model.paymentsOf(batch).flatMap(({ name }, index): Statement[] => {
    const { what, code } = payments[index % payments.length] ?? { what: 'silent', code: null }
    if (what === 'silent') return []
    const hasReason = what === 'failed' || what === 'returned'
    return [{ says: 'status', of: name, status: states[what], code: hasReason ? code : null }]
  })
  return [{ says: 'batch', of, status, code: status === 'RJCT' ? wholeCode : null }, ...single]
}

function entries(
  { form, whole, isTwice, payments, stranger }: Answer,
  { model, bank }: Scene,
  batch: string,
): Statement[] {
  const isArucs = form === 'arucs'
  const single = model.paymentsOf(batch).flatMap(({ name, net }, index): Statement[] => {
    const { what, code, isWrong } = payments[index % payments.length] ?? { what: 'silent', code: null, isWrong: false }
    if (what === 'silent' || what === 'pending' || what === 'failed') return []
    const isReturn = what === 'returned'
    if (isArucs && !isReturn) return []
    const amount = isWrong ? net + 1n : net
    // The bank uses the same reference for an entry in all messages.
    const reference = `${isReturn ? 'R' : 'P'}-${name}-${amount}`
    const reason = isArucs ? (code === 'AC04' ? '5' : '2') : code
    return [{ says: 'entry', of: name, isReturn, amount, code: isReturn ? reason : null, ...bank.booking(reference) }]
  })
  const strange: Statement[] = stranger
    ? [
        {
          says: 'entry',
          of: 'stranger',
          isReturn: isArucs,
          amount: 1_234n,
          code: isArucs ? '2' : null,
          ...bank.booking(bank.next('S')),
        },
      ]
    : []
  if (isArucs || !whole.startsWith('booked')) return [...single, ...strange]
  const failing = model.paymentsOf(batch).filter(({ outcome }, index) => {
    const { what } = payments[index % payments.length] ?? { what: 'silent' }
    return outcome === null && (what === 'failed' || what === 'returned')
  })
  const debit = model.debitOf(batch)
  const net = failing.reduce((sum, each) => sum - each.net, debit)
  const amount = whole === 'booked early' ? net : whole === 'booked wrongly' ? debit + 1n : debit
  // A bank books a batch as one sum or payment by payment; returns are always booked one by one.
  const returns = whole === 'booked early' ? [] : single.filter(each => each.says === 'entry' && each.isReturn)
  if (amount === 0n) return [...returns, ...strange]
  const debits = (isTwice ? ['B', 'C'] : ['B']).map(
    (letter): Statement => ({
      ...{ says: 'whole batch', of: batch, amount },
      ...bank.booking(`${letter}-${batch}-${amount}`),
    }),
  )
  return [...debits, ...returns, ...strange]
}

function repeated(file: BankFile, { how, bank }: { how: (Command & { do: 'again' })['how']; bank: Bank }): BankFile {
  switch (how) {
    case 'same bytes':
      return file
    case 'other bytes':
      return { ...file, copy: file.copy + 1 }
    case 'without the fault':
      return { ...file, fault: 'none' }
    case 'other message': {
      // Repeats the entries of a notification in a statement, or vice versa, and statuses in a new report.
      const others = { 'camt.053': 'camt.054', 'camt.054': 'camt.053', 'pain.002': 'pain.002', arucs: 'arucs' } as const
      return bank.write({ ...file, form: others[file.form] })
    }
    default:
      return how satisfies never
  }
}

function* money(
  { amount, reference: number, isRecorded, partner: index, isTwice }: Command & { do: 'money' },
  { bank }: Scene,
): Generator<Step> {
  const partner = partners[index] ?? 'p0'
  const reference = number === null ? null : `top-up ${number}`
  const record: Step[] = reference === null ? [] : [{ do: 'fund', partner, rail: 'euros', amount, reference }]
  if (isRecorded === 'before') yield* record
  const arrivals = isTwice ? ['E', 'E'] : ['E']
  const statements = arrivals.map(
    (each): Statement => ({ says: 'money', amount, reference, ...bank.booking(bank.next(each)) }),
  )
  const file = { rail: 'euros', debtor: debtorOf(partner), form: 'camt.053', fault: 'none', statements } as const
  yield { do: 'import', file: bank.write(file) }
  if (isRecorded === 'after') yield* record
}

function decisionOf(command: Command & { do: 'decide' }, model: FileRails): Decision {
  const { decision } = command
  if (decision === 'attach') return { decision, to: choose([...model.payments.keys()], command.withdrawal) ?? 'w0' }
  if (decision === 'book') {
    const { partner, reference } = command
    return {
      decision,
      partner: partners[partner] ?? 'p0',
      reference: reference === null ? null : `top-up ${reference}`,
    }
  }
  return { decision }
}

/** Sends, answers and decides everything. */
function* theEnd({ world, model, bank }: Scene): Generator<Step> {
  yield submission(world)
  awaitCutOff(world)
  yield { do: 'send', fault: 'none' }
  for (const [name, batch] of model.batches) {
    const isUnsent = ['building', 'approved'].includes(batch.status)
    if (isUnsent && batch.isHeld && batch.claims === 0) yield { do: 'let go', batch: name }
    if (batch.status === 'building') for (const person of ['Ada', 'Bob']) yield { do: 'approve', batch: name, person }
  }
  yield { do: 'send', fault: 'none' }
  for (const batch of [...model.batches.values()].filter(
    ({ rail, status }) => rail === 'euros' && status !== 'cancelled',
  )) {
    const statements = model
      .paymentsOf(batch.name)
      .filter(({ outcome }) => outcome === null)
      .map(({ name, net }): Statement => {
        return {
          says: 'entry',
          of: name,
          isReturn: false,
          amount: net,
          code: null,
          ...bank.booking(`P-${name}-${net}`),
        }
      })
    const { rail, debtor } = batch
    const file = { rail, debtor, form: 'camt.053', fault: 'none', statements } as const
    if (statements.length > 0) yield { do: 'import', file: bank.write(file) }
  }
  // Bacs does not confirm payments: after a week a payment counts as paid.
  world.now += 7 * 86_400_000
  yield { do: 'send', fault: 'none' }
  for (const exception of model.openQuestions()) yield { do: 'decide', exception, by: { decision: 'ignore' } }
  yield { do: 'send', fault: 'none' }
  yield { do: 'read reports' }
  for (const exception of model.openExceptions()) yield { do: 'decide', exception, by: { decision: 'ignore' } }
}

/** Chooses from the matching entities, and now and then from all. */
function chooseMostly<T>(fitting: readonly T[], all: readonly T[], which: number): T | undefined {
  return choose(which === 5 || fitting.length === 0 ? all : fitting, which)
}
