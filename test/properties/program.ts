import assert from 'node:assert/strict'
import type pg from 'pg'
import pino from 'pino'
import * as closing from '../../src/closing/closing.ts'
import { closingTasks } from '../../src/closing/tasks.ts'
import { connect } from '../../src/database/connect.ts'
import type { Db, Tx } from '../../src/database/database.ts'
import * as invoices from '../../src/fees/invoices.ts'
import * as float from '../../src/float/float.ts'
import { floatTasks } from '../../src/float/tasks.ts'
import { type Issue, Problem } from '../../src/kernel/errors.ts'
import { type IdKind, newId } from '../../src/kernel/ids.ts'
import { floatsToFold, foldCycleChanges, foldFloatChanges } from '../../src/ledger/ledger.ts'
import * as members from '../../src/members/members.ts'
import { release } from '../../src/members/restrictions.ts'
import { Fingerprints } from '../../src/members/sealing.ts'
import { createKey, scopes } from '../../src/partners/api-keys.ts'
import { createClock } from '../../src/partners/clocks.ts'
import { createPartner, type Partner, pausePartner, resumePartner } from '../../src/partners/partners.ts'
import * as deductions from '../../src/pay-cycles/deductions.ts'
import * as payCycles from '../../src/pay-cycles/pay-cycles.ts'
import * as payRuns from '../../src/pay-runs/pay-runs.ts'
import { payRunTasks } from '../../src/pay-runs/tasks.ts'
import type { Channel } from '../../src/payouts/channels/channel.ts'
import type { Report } from '../../src/payouts/payments/payment.ts'
import { payoutTasks } from '../../src/payouts/tasks.ts'
import { setUncheckedAccount } from '../../src/sandbox/unchecked-account.ts'
import { sealerOf } from '../../src/sealing/held.ts'
import { openSealer } from '../../src/sealing/installation-keys.ts'
import * as dues from '../../src/settlements/dues.ts'
import * as settlements from '../../src/settlements/settlements.ts'
import { readStatement } from '../../src/statements/statement.ts'
import { setTier } from '../../src/tiers/tiers.ts'
import { findUnsealed, seal } from '../../src/verification/sealing.ts'
import { verify } from '../../src/verification/verify.ts'
import { readBalance } from '../../src/withdrawals/balance.ts'
import { complete } from '../../src/withdrawals/completions.ts'
import * as intents from '../../src/withdrawals/intents.ts'
import { withdrawalTasks } from '../../src/withdrawals/tasks.ts'
import * as withdrawals from '../../src/withdrawals/withdrawals.ts'
import type { TaskContext, TaskName, Tasks } from '../../src/worker/task.ts'
import type { Harness } from '../harness/harness.ts'
import { insertMembers } from '../harness/insert-members.ts'
import { keySource } from '../harness/installation-key.ts'
import { badAccount, euAccount, goodAccount } from '../harness/samples.ts'
import {
  type AccountName,
  type BankAnswer,
  currencyOf,
  type Line,
  type Settings,
  type Step,
  subjectOf,
  type Terms,
  type TierName,
} from './model.ts'

const accounts = {
  A: goodAccount,
  B: { ...goodAccount, sortCode: '107999', accountNumber: '88837491' },
  EU: euAccount,
  failing: badAccount,
  none: null,
} as const satisfies Record<AccountName, object | null>

const kinds = { m: 'member', i: 'withdrawalIntent', w: 'withdrawal', v: 'invoice', r: 'payRun', c: 'payCycle' } as const

const log = pino({ level: 'silent' })

type Base = { name: string; settings: Settings; partner: Partner; memberIds: string[]; key: string }

type Of = { terms: Record<TierName, Terms>; tiers: readonly TierName[]; now: Date }
type Beginning = Of & { all: Record<string, Settings>; bank?: Bank }
type Parts = {
  harness: Harness
  db: Db
  pool: pg.Pool
  cleaner: ReturnType<typeof connect>
  resetting: string
  vacuuming: string
  bases: ReadonlyMap<string, Base>
}

/** Gives the channels that pay withdrawals. */
type Bank = (context: { db: Db; now: () => Date; partnerIdOf: (name: string) => string }) => Channel[]

/**
 * The program on a real database, driven in terms of the model. Each step runs the operations and tasks that serve
 * production, in its own committed transactions.
 */
export class Program {
  now = new Date(0)
  readonly #of: Parts
  readonly #tasks: Partial<Tasks>
  readonly #owners = new Map<string, Base>()
  readonly #bank = new Map<string, string>()
  #answer: BankAnswer = 'pending'
  #isWhole = false
  #base: Base
  /** The partners of the run. */
  #run: Base[] = []
  #names = new Map<string, string>()
  #ids = new Map<string, string>()
  #counts = new Map<string, number>()

  /**
   * Empties the harness's database and adds one partner with members per entry of `all`.
   * @param options.bank by default a bank that is polled, and answers as the steps demand
   */
  static async start(harness: Harness, { all, bank, ...of }: Beginning): Promise<Program> {
    const { host, user, superuser, database } = harness
    // Durability is tested elsewhere; waiting for the disk would take half the time.
    const options = encodeURIComponent('-c synchronous_commit=off -c plan_cache_mode=force_generic_plan')
    const address = `postgres://${user}@/${database}?host=${encodeURIComponent(host)}&options=${options}`
    const { db, pool } = connect(address, { log, connectionsMax: 10 })
    await openSealer(db, keySource)
    pool.on('connect', planOnce)
    // The program runs with its own role only, which may not delete from append-only tables.
    const cleaner = connect({ host, user: superuser, database }, { log, connectionsMax: 1 })
    await cleaner.pool.query('set synchronous_commit = off')
    const { rows } = await pool.query<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables
        where (schemaname = 'public' and tablename <> all('{installation,installation_key_uses,installation_keys,state_transitions,withdrawal_intent_expiry,migrations,migration_steps}'))
           or (schemaname, tablename) = ('graphile_worker', '_private_jobs')`,
    )
    const deletion = [
      ...rows.map(({ name }) => `delete from ${name};`),
      "update withdrawal_intent_expiry set expired_until = '-infinity', removed_until = '-infinity';",
    ].join('\n')
    await cleaner.pool.query(asReplica(deletion))
    const bases = new Map<string, Base>()
    for (const [name, settings] of Object.entries(all)) {
      bases.set(name, await db.transaction().execute(tx => addPartner(tx, { name, settings, ...of })))
    }
    const kept = [
      ...['partners', 'api_keys', 'sandbox_clocks', 'tiers', 'tier_versions', 'members', 'member_keys', 'pay_cycles'],
      'events',
    ]
    await cleaner.pool.query(
      `create schema base; ${kept.map(name => `create table base.${name} as table ${name};`).join(' ')}`,
    )
    const restoration = kept.map(name => `insert into ${name} table base.${name};`).join('\n')
    const vacuuming = `vacuum ${rows.map(({ name }) => name).join(', ')}`
    const resetting = asReplica(`${deletion}\n${restoration}`)
    return new Program({ harness, db, pool, cleaner, resetting, vacuuming, bases }, bank)
  }

  private constructor(of: Parts, bank: Bank | undefined) {
    const { db, bases } = of
    this.#of = of
    this.#base = known(bases.values().next().value)
    this.#tasks = {
      ...payRunTasks,
      ...closingTasks,
      ...withdrawalTasks,
      ...floatTasks,
      ...payoutTasks(
        bank?.({ db, now: () => this.now, partnerIdOf: name => known(bases.get(name)).partner.id }) ?? [this.#rail()],
      ),
    }
  }

  /** Restores the initial state, for a run with the partners of these names. */
  async reset(...partners: string[]): Promise<void> {
    await this.#of.cleaner.pool.query(this.#of.resetting)
    this.#run = partners.map(name => known(this.#of.bases.get(name)))
    const sealer = sealerOf(this.#of.db)
    this.#names = new Map(
      this.#run.flatMap(({ partner }) =>
        Object.entries(accounts).map(([name, account]) => [
          account === null
            ? 'null'
            : new Fingerprints(sealer, partner.id)
                .ofAccount(account)
                .map(each => each.toString('hex'))
                .join(),
          name,
        ]),
      ),
    )
    this.#ids = new Map()
    this.#counts = new Map()
    this.#owners.clear()
    this.#bank.clear()
    this.#polled.clear()
    for (const base of this.#run) {
      this.#base = base
      this.#name(this.#run.length === 1 ? 'partner' : base.name, base.partner.id)
      for (const memberId of base.memberIds) this.#nameNew('m', memberId)
    }
  }

  async stop(): Promise<void> {
    await this.#of.db.destroy()
    await this.#of.cleaner.close()
  }

  /** Vacuums the tables after many runs. */
  async tidy(): Promise<void> {
    await this.#of.cleaner.pool.query(this.#of.vacuuming)
  }

  /**
   * Moves the partner's clock with the public API, which does all work that falls due on the way. The real clock stands still
   * in the meantime.
   */
  async moveClock(to: Date): Promise<void> {
    const call = { key: this.#base.key, body: { to: to.toISOString() } }
    const { status, body, text } = await this.#of.harness.call('POST', '/v1/sandbox/clock', call)
    assert.deepEqual([status, body.now], [200, to.toISOString()], text)
    this.now = to
  }

  /** @returns 'ok' and the content of the answer, or the refusal, in terms of the model */
  async perform(step: Step): Promise<string> {
    try {
      return `ok ${(await this.#perform(step)) ?? ''}`.trim()
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      const after = error.headers['retry-after']
      const issues = error.issues.map(issue => this.#issue(issue)).join(', ')
      return `${error.status} ${issues}${after === undefined ? '' : ` after ${after}`}`
    }
  }

  /** Returns the observable state, under the names of the model; of several partners, each key begins with a partner's name. */
  async state(): Promise<Map<string, string>> {
    if (this.#run.length === 1) return await this.#stateOf(this.#base)
    const all = new Map<string, string>()
    for (const base of this.#run)
      for (const [key, value] of await this.#stateOf(base)) all.set(`${base.name} ${key}`, value)
    return all
  }

  async #stateOf({ partner }: Base): Promise<Map<string, string>> {
    const { rows } = await this.#of.pool.query<ObservedRow>(everything, [partner.id])
    // Cycles are created without a step, so their ids get names here, in order of start date.
    const cycles = rows.filter(({ kind }) => kind === 'cycle')
    for (const { id } of cycles.sort((a, b) => (a.words[0] ?? '').localeCompare(b.words[0] ?? '')))
      this.#nameNew('c', id)
    const named = (word: string | null) => this.#names.get(`${word}`) ?? word ?? 'none'
    const observed = new Map(
      rows.map(({ kind, id, more, words }) => [
        [kind, ...[id, ...more].filter(each => each !== '').map(named)].join(' '),
        words.map(named).join(' '),
      ]),
    )
    for (const [reference, payment] of this.#bank)
      observed.set(`payment ${named(this.#withdrawalOf.get(reference) ?? reference)}`, payment)
    return observed
  }

  /** Returns what `ledger verify` finds wrong before the books are sealed and after that, then with and without `--all` in turns. */
  async disagreements(): Promise<string[]> {
    const { db } = this.#of
    const found = await verify(db)
    await this.#sealBooks()
    this.#isWhole = !this.#isWhole
    const checks = [...found, ...(await verify(db, { isWhole: this.#isWhole }))]
    return checks.flatMap(({ name, disagreement }) =>
      disagreement === null ? [] : [`${name}: ${this.#inNames(JSON.stringify(disagreement))}`],
    )
  }

  /** @throws BooksDisagree */
  async #sealBooks(): Promise<void> {
    for (const cycle of await findUnsealed(this.#of.db, { now: this.now }))
      while (await seal(this.#of.db, cycle, () => this.now));
  }

  async #perform(step: Step): Promise<string | undefined> {
    this.#base = this.#owners.get(subjectOf(step) ?? '') ?? known(this.#run[0])
    const { partner } = this.#base
    const [now, partnerId] = [this.now, partner.id]
    switch (step.do) {
      case 'upload pay run': {
        const run = await this.#within(tx => payRuns.create(tx, { partner, lines: this.#lines(step.lines), now }))
        return this.#nameNew('r', run.id)
      }
      case 'revert pay run': {
        const payRunId = this.#id(step.run)
        const { status } = await this.#within(tx => payRuns.revert(tx, { partnerId, payRunId, now }))
        return status
      }
      case 'create intent': {
        const { amount, currency } = step
        const memberId = this.#id(step.member)
        const { id } = await this.#within(tx =>
          intents.create(tx, { partner, memberId, amount: { amount, currency }, now }),
        )
        return this.#nameNew('i', id)
      }
      case 'complete intent': {
        const intentId = this.#id(step.intent)
        const { withdrawalId } = await this.#within(tx => complete(tx, { partner, intentId, now, clockOffsetMs: 0 }))
        return this.#nameNew('w', withdrawalId)
      }
      case 'cancel intent': {
        const intentId = this.#id(step.intent)
        const { status } = await this.#within(tx => intents.cancel(tx, { partnerId, intentId, now }))
        return status
      }
      case 'cancel withdrawal': {
        const withdrawalId = this.#id(step.withdrawal)
        await this.#within(tx => withdrawals.cancel(tx, { partnerId, withdrawalId, now }))
        return
      }
      case 'report payout': {
        const bankReport = {
          partnerId,
          withdrawalId: this.#id(step.withdrawal),
          outcome: step.outcome,
          reason: null,
          now,
        }
        const { result } = await this.#within(tx => withdrawals.applyBankReport(tx, bankReport))
        return result
      }
      case 'settle': {
        const payCycleId = this.#id(step.cycle)
        const report: settlements.PayrollReport = {
          taken: this.#lines(step.lines).map((line, at) => ({ ...line, at })),
          faults: [],
          naming: { problem: 'BodyValidation', placeOf: ({ at }) => ({ path: String(at) }) },
        }
        const { reportsArrivals } = this.#base.settings
        const counts = await this.#within(tx =>
          settlements.create(tx, { partnerId, payCycleId, report, reportsArrivals: () => reportsArrivals, now }),
        )
        const outcomes = ['matched', 'short', 'over', 'unknown'] as const
        return outcomes.map(outcome => `${outcome} ${counts[outcome]}`).join(' ')
      }
      case 'receive settlement': {
        const { amount, currency } = step
        const arrival = {
          partnerId,
          payCycleId: this.#id(step.cycle),
          amount: { amount, currency },
          isByHand: true,
          now,
        }
        await this.#within(tx => dues.receive(tx, arrival))
        return
      }
      case 'set terms': {
        const { tier: name, terms } = step
        await this.#within(tx =>
          setTier(tx, { partnerId, name, currency: currencyOf[name], terms: { ...terms, payoutSpeed: null }, now }),
        )
        return
      }
      case 'change tier': {
        const command = { type: 'Update', memberId: this.#id(step.member), wanted: { tier: step.tier } } as const
        await this.#within(tx => members.change(tx, { partner, command, now }))
        return
      }
      case 'change account':
        await this.#changeAccount(this.#id(step.member), step.account)
        return
      case 'offboard member': {
        const command = { type: 'Offboard', memberId: this.#id(step.member) } as const
        await this.#within(tx => members.change(tx, { partner, command, now }))
        return
      }
      case 'reinstate member': {
        const {
          id: memberId,
          status: _status,
          ...member
        } = await members.find(this.#of.db, {
          partnerId,
          memberId: this.#id(step.member),
        })
        const { phone: _phone, workerId: _workerId, dob: _dob, gender: _gender, ...wanted } = member
        await this.#within(tx => members.change(tx, { partner, command: { type: 'Replace', memberId, wanted }, now }))
        return
      }
      case 'activate member': {
        const command = { type: 'Activate', memberId: this.#id(step.member) } as const
        await this.#within(tx => members.change(tx, { partner, command, now }))
        return
      }
      case 'release member': {
        const memberId = this.#id(step.member)
        await this.#within(tx => release(tx, { partnerId, memberId }))
        return
      }
      case 'fund float':
      case 'withdraw from float': {
        const { amount, currency } = step
        const move = step.do === 'fund float' ? float.fund : float.withdraw
        await this.#within(tx => move(tx, { partnerId, amount: { amount, currency }, now }))
        return
      }
      case 'withdraw revenue': {
        const { amount, currency } = step
        const reference = `revenue ${now.toISOString()}`
        await this.#within(tx => float.withdrawRevenue(tx, { partnerId, amount: { amount, currency }, reference, now }))
        return
      }
      case 'issue invoice': {
        const { id } = await this.#within(tx => invoices.issue(tx, { partnerId, currency: step.currency, now }))
        return this.#nameNew('v', id)
      }
      case 'pay invoice': {
        const payment = { reference: 'paid', paidOn: '2026-01-01' }
        await this.#within(tx => invoices.pay(tx, { partnerId, invoiceId: this.#id(step.invoice), ...payment, now }))
        return
      }
      case 'reopen invoice':
        await this.#within(tx => invoices.reopen(tx, { partnerId, invoiceId: this.#id(step.invoice), now }))
        return
      case 'void invoice':
        await this.#within(tx => invoices.makeVoid(tx, { partnerId, invoiceId: this.#id(step.invoice), now }))
        return
      case 'set floor': {
        const { floor, currency } = step
        await this.#within(tx => float.setFloor(tx, { partnerId, currency, floor, now }))
        return
      }
      case 'pause':
        await this.#within(tx => pausePartner(tx, partnerId))
        return
      case 'resume':
        await this.#within(tx => resumePartner(tx, partnerId))
        return
      case 'fold float changes':
        for (const float of await floatsToFold(this.#of.db, { countMin: 1 })) {
          await this.#within(tx => foldFloatChanges(tx, { ...float, countMax: 10 }))
        }
        await this.#within(tx => foldCycleChanges(tx, { partnerId, countMax: 10 }))
        return
      case 'make pay runs available':
        return await this.work('make-pay-runs-available')
      case 'expire intents':
        return await this.work('expire-intents')
      case 'submit withdrawals':
        this.#answer = step.answer
        return await this.work('submit-withdrawals')
      case 'poll withdrawals':
        this.#answer = step.answer
        return await this.work('ask-about-withdrawals')
      case 'close cycles':
        await this.work('close-pay-cycles')
        await this.#sealBooks()
        return
      case 'begin to close': {
        // As when the task is killed after a chunk.
        const { members: countMax } = step
        await this.#within(tx => closing.endIfOver(tx, { partnerId, now }))
        if (countMax === 0) return
        const { start: progress } = closing
        await this.#within(tx => closing.releaseSome(tx, { partnerId, progress, countMax, now }))
        return
      }
      case 'watch floats':
        return await this.work('watch-floats')
      case 'read balance':
        return await this.#readBalance(this.#id(step.member))
      case 'read deductions':
        return await this.#readDeductions(this.#id(step.cycle))
      case 'read statement':
        return await this.#readStatement(step)
      default:
        return step satisfies never
    }
  }

  async #changeAccount(memberId: string, name: AccountName): Promise<void> {
    const { partner } = this.#base
    const account = accounts[name]
    await this.#within(async tx => {
      if (name === 'failing') {
        await setUncheckedAccount(tx, { partnerId: partner.id, memberId, account: badAccount, now: this.now })
      } else {
        const command = { type: 'Update', memberId, wanted: { accountDetails: account } } as const
        await members.change(tx, { partner, command, now: this.now })
      }
    })
  }

  async #readBalance(memberId: string): Promise<string> {
    const balance = await readBalance(this.#of.db, {
      hasRail: () => true,
      partner: this.#base.partner,
      memberId,
      now: this.now,
    })
    const { available, tier, payCycle, lastPayDate, isTemporarilyUnavailable } = balance
    const words = [
      available,
      tier.currency,
      payCycle.id,
      lastPayDate?.toISOString() ?? 'never',
      isTemporarilyUnavailable,
    ]
    return this.#inNames(words.join(' '))
  }

  async #readDeductions(payCycleId: string): Promise<string> {
    const partnerId = this.#base.partner.id
    await payCycles.findWithDeductions(this.#of.db, { partnerId, payCycleId })
    const listed = await deductions.list(this.#of.db, { partnerId, payCycleId, page: { skip: 0, take: 100 } })
    const texts = listed.map(({ memberId, currency, amount }) => `${memberId} ${currency} ${amount}`)
    return this.#inNames(texts.join(', '))
  }

  async #readStatement({ member, currency, asOf }: Step & { do: 'read statement' }): Promise<string> {
    const { opening, closing, lines } = await readStatement(this.#of.db, {
      ...{ partnerId: this.#base.partner.id, memberId: this.#id(member), currency },
      ...{ asOf: new Date(asOf), page: { skip: 0, take: 1_000 } },
    })
    const balances = [opening, closing, ...lines.map(line => line.balanceAfter)]
    const negative = balances.find(({ available, owed }) => available < 0n || owed < 0n)
    assert.equal(
      negative,
      undefined,
      `a statement shows a negative balance: available ${negative?.available}, owed ${negative?.owed}`,
    )
    assert.deepEqual(opening, { available: 0n, owed: 0n }, 'a whole statement starts at zero')
    return `available ${closing.available} owed ${closing.owed}`
  }

  /** Connected with the role of the program. */
  get db(): Db {
    return this.#of.db
  }

  async #within<T>(operation: (tx: Tx) => Promise<T>): Promise<T> {
    return await this.#of.db.transaction().execute(operation)
  }

  /** Runs a task of the worker once. */
  async work(task: TaskName): Promise<undefined> {
    const context: TaskContext = { db: this.#of.db, log, now: () => this.now }
    await known(this.#tasks[task])(context)
  }

  // A bank that responds as the step demands, and asserts that a reference always has the same payment.
  #rail(): Channel {
    const reportsOf = (reference: string): Report[] => {
      if (this.#answer === 'silent') throw new Error('The bank does not respond')
      return [{ reference, outcome: this.#answer, reason: null }]
    }
    return {
      name: 'scripted',
      feed: 'scripted',
      currencies: 'rest',
      isSlow: false,
      time: { kept: 'real' },
      work: [],
      // High enough for all payments in one call: batching to the bank is not under test here.
      paymentsMax: 1_000,
      callMsMax: 20_000,
      submit: async payments =>
        payments.flatMap(({ withdrawalId, reference, netAmount: { amount, currency } }) => {
          this.#withdrawalOf.set(reference, withdrawalId)
          // A payment that the bank does not know is submitted again, this time successfully.
          if (this.#answer === 'unknown' && !this.#polled.delete(reference)) return []
          const report = reportsOf(reference)
          const payment = `${amount} ${currency}`
          assert.equal(
            this.#bank.get(reference) ?? payment,
            payment,
            'a payment was resubmitted with a different amount',
          )
          this.#bank.set(reference, payment)
          return report.map(each => ({ ...each, outcome: each.outcome === 'unknown' ? 'pending' : each.outcome }))
        }),
      ask: async references => {
        for (const reference of references) this.#polled.add(reference)
        return references.flatMap(reportsOf)
      },
      collect: async () => ({ reports: [], cursor: null }),
    }
  }
  readonly #polled = new Set<string>()
  readonly #withdrawalOf = new Map<string, string>()

  #lines(lines: Line[]): { memberId: string; amount: bigint; currency: Line['currency'] }[] {
    return lines.map(({ member, ...money }) => ({ memberId: this.#id(member), ...money }))
  }

  #issue({ code, memberId, path, lowerLimit, upperLimit }: Issue): string {
    const limit = (lowerLimit ?? upperLimit) as { amount: number; currency: string } | undefined
    const extra = memberId ?? path ?? (limit === undefined ? undefined : `${limit.amount} ${limit.currency}`)
    return extra === undefined ? code : `${code} ${this.#names.get(String(extra)) ?? extra}`
  }

  // An unknown name gets a new id that no entity has.
  #id(name: string): string {
    const id = this.#ids.get(name)
    if (id !== undefined) return id
    const kind: IdKind | undefined = kinds[name.slice(0, 1) as keyof typeof kinds]
    assert(kind !== undefined, `${name} is of no kind`)
    this.#name(name, newId(kind, this.now))
    return this.#id(name)
  }

  #nameNew(prefix: keyof typeof kinds, id: string): string {
    const name = this.#names.get(id)
    if (name !== undefined) return name
    const count = this.#counts.get(prefix) ?? 0
    this.#counts.set(prefix, count + 1)
    this.#name(`${prefix}${count}`, id)
    return `${prefix}${count}`
  }

  #name(name: string, id: string): void {
    this.#names.set(id, name)
    this.#ids.set(name, id)
    this.#owners.set(name, this.#base)
  }

  /** The id of an entity of the model. */
  idOf(name: string): string {
    return known(this.#ids.get(name))
  }

  /** The name of an entity in the model. */
  nameOf(id: string): string {
    return known(this.#names.get(id))
  }

  #inNames(text: string): string {
    return text.replaceAll(/\b[a-z]+_[0-9a-z]{26}\b/g, id => this.#names.get(id) ?? id)
  }
}

async function addPartner(
  tx: Tx,
  { name, settings, terms, tiers, now }: Of & { name: string; settings: Settings },
): Promise<Base> {
  const { graceMinutes, intentMinutes, holdSeconds, autoActivate, shortfallPolicy, timeZone, cycleDays } = settings
  const partner = await createPartner(tx, {
    name,
    settings: {
      ...{ graceMinutes, intentMinutes, holdSeconds, autoActivate, shortfallPolicy, timeZone: timeZone.name },
      ...{ cycleSchedule: cycleDays === 7 ? 'weekly' : 'two_weekly', cycleAnchor: '2024-01-01' },
      // The rate limiter uses the real clock, which moves by milliseconds.
      ...{ requestsPerSecond: 1_000_000, requestsBurst: 1_000_000 },
    },
    now,
  })
  await payCycles.openFirst(tx, { partner, now })
  for (const [tier, each] of Object.entries(terms)) {
    const currency = currencyOf[tier as TierName]
    await setTier(tx, { partnerId: partner.id, name: tier, currency, terms: { ...each, payoutSpeed: null }, now })
  }
  const memberIds = tiers.map(() => newId('member', now)).sort()
  const members = tiers.map((tier, at) => ({
    ...{ id: memberIds[at] ?? '', tier, email: `m${at}@example.com` },
    accountDetails: accounts[currencyOf[tier] === 'EUR' ? 'EU' : 'A'],
  }))
  await insertMembers(tx, { partnerId: partner.id, members, now })
  await tx.updateTable('members').set({ status: 'active' }).where('partnerId', '=', partner.id).execute()
  const { secret } = await createKey(tx, { partnerId: partner.id, mode: 'sandbox', scopes, expiresAt: null, now })
  // Creates the clock in advance, because the first move of a new clock waits for other processes.
  await createClock(tx, partner.id)
  return { name, settings, partner, memberIds, key: secret }
}

type ObservedRow = { kind: string; id: string; more: string[]; words: (string | null)[] }

// A single statement, since it runs after every step.
const everything = `
    select 'paused' as kind, '' as id, '{}'::text[] as more, array[paused::text] as words
      from partners where id = $1
    union all
    select 'member', id, '{}', array[status, tier, coalesce(encode(account_details_fingerprint, 'hex'), 'null')]
      from members where partner_id = $1
    union all
    select 'restricted', id, '{}', array_remove(array[case when account_refused is not null then 'account' end,
                                                      case when review_reason is not null then 'review' end], null)
      from members where partner_id = $1 and (account_refused is not null or review_reason is not null)
    union all
    select 'cycle', id, '{}',
           array[start_date::text, end_date::text, status, (released_at is not null)::text, (settled_at is not null)::text]
      from pay_cycles where partner_id = $1
    union all
    select 'run', id, '{}', array[status, pay_cycle_id, (extract(epoch from scheduled_for) * 1000)::bigint::text]
      from pay_runs where partner_id = $1
    union all
    select 'intent', id, '{}', array[status, member_id, pay_cycle_id, gross_amount::text, net_amount::text, fee::text, employer_fee::text,
                                     currency, (extract(epoch from expires_at) * 1000)::bigint::text]
      from withdrawal_intents where partner_id = $1
    union all
    select 'withdrawal', id, '{}', array[status, withdrawal_intent_id, member_id, pay_cycle_id, gross_amount::text, net_amount::text,
                                         fee::text, employer_fee::text, currency, balance_after::text, adjusted_in_cycle_id]
      from withdrawals where partner_id = $1
    union all
    select 'settlement', pay_cycle_id, array[member_id, currency],
           array[deducted::text, taken::text, outcome, carried::text, written_off::text]
      from settlement_lines where partner_id = $1
    union all
    select 'covered', withdrawal_id, array[pay_cycle_id], array[covered::text]
      from settlement_fees where partner_id = $1 and released_at is null and covered > 0
    union all
    select 'invoice', id, '{}', array[status, currency, sum::text]
      from invoices where partner_id = $1
    union all
    select 'due', pay_cycle_id, array[currency], array[amount::text, received::text]
      from settlement_dues where partner_id = $1
    union all
    select 'floor', currency, '{}', array[floor::text, (low_since is not null)::text]
      from float_limits where partner_id = $1
    union all
    select 'balance', name, array[member_id, currency], array[amount::text]
      from ledger_balances l
      left join pay_cycles c on c.partner_id = l.partner_id and c.id = l.pay_cycle_id
     cross join lateral (values (case c.status when 'Open' then 'available' else 'unused' end, available), ('owed', owed)) as b (name, amount)
     where l.partner_id = $1 and amount <> 0
    union all
    select case account when 'earned_pay' then 'earned' else 'account' end,
           case account when 'earned_pay' then pay_cycle_id when 'payouts_pending' then 'pending'
             when 'partner_fees' then 'employer fees' when 'written_off' then 'written off'
             when 'payroll_receivable' then 'receivable' when 'fees_receivable' then 'invoiced'
             when 'operator_account' then 'operator' else account end,
           array[coalesce(member_id, ''), currency],
           array[(case when account in ('payouts_pending', 'fees', 'funding', 'revenue') then -sum(amount) else sum(amount) end)::text]
      from (select t.currency, side.account, side.amount,
                   case when side.account = 'earned_pay' then t.pay_cycle_id end as pay_cycle_id,
                   case when side.account in ('earned_pay', 'carried') then t.member_id end as member_id
              from ledger_transfers t
             cross join lateral (values (t.debit, t.amount), (t.credit, -t.amount)) as side (account, amount)
             where t.partner_id = $1) sides
     where account not in ('member_available', 'member_owed')
     group by account, pay_cycle_id, member_id, currency having sum(amount) <> 0
    union all
    select 'payment', coalesce(o.withdrawal_id, p.reference), '{}', array[p.amount::text, p.currency]
      from simulated_bank_payments p left join payouts o on o.reference = p.reference
     where p.partner_id = $1
    union all
    select 'event', type, array[resource_id], array[count(*)::text]
      from events where partner_id = $1 group by type, resource_id`

// A few dozen different statements run hundreds of thousands of times; planning each time would dominate the run time.
function planOnce(client: pg.PoolClient): void {
  const names = new Map<string, string>()
  const query = client.query.bind(client) as (...args: unknown[]) => unknown
  Object.assign(client, {
    query(...args: unknown[]) {
      const [text, values, ...rest] = args
      if (typeof text !== 'string' || !Array.isArray(values)) return query(...args)
      const name = names.get(text) ?? `statement_${names.size}`
      names.set(text, name)
      return query({ name, text, values }, ...rest)
    },
  })
}

// Bypasses the append-only triggers. Only for emptying tables between test runs.
function asReplica(statements: string): string {
  return `begin; set local session_replication_role = replica; ${statements} commit;`
}

function known<T>(value: T | undefined): T {
  assert(value !== undefined)
  return value
}
