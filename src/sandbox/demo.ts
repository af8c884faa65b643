import assert from 'node:assert/strict'
import type { BankAccount } from '../bank-accounts/rules.ts'
import { closeIfOver } from '../closing/closing.ts'
import type { Db, Reader, Tx } from '../database/database.ts'
import * as float from '../float/float.ts'
import type { Currency, Money } from '../kernel/money.ts'
import { addDays, dayIn, startOfDay } from '../kernel/time.ts'
import * as members from '../members/members.ts'
import { createKey, scopes } from '../partners/api-keys.ts'
import { createPartner, listPartners, type Partner } from '../partners/partners.ts'
import { defaultSettings } from '../partners/settings.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'
import { cycleOf } from '../pay-cycles/rules.ts'
import * as payRuns from '../pay-runs/pay-runs.ts'
import type { FileRailSettings } from '../payouts/books/file-rail-settings.ts'
import { instruct, simulatedBank } from '../payouts/channels/simulated/simulated-bank.ts'
import { create as createPayouts } from '../payouts/payouts.ts'
import { backOffFrom } from '../payouts/rules.ts'
import type { TierTerms } from '../tiers/terms.ts'
import { listCurrencies, setTier } from '../tiers/tiers.ts'
import { complete } from '../withdrawals/completions.ts'
import * as intents from '../withdrawals/intents.ts'
import { applyBankReport, cancel, hasAccount, submitDue } from '../withdrawals/withdrawals.ts'
import { fillRail, importUnexplained } from './demo-rail.ts'
import { setUncheckedAccount } from './unchecked-account.ts'

const partnerName = 'Acme Couriers'

const limits = {
  lowerLimit: 1_000n,
  upperLimit: 20_000n,
  withdrawalsPerDay: null,
  withdrawalsPerCycle: null,
  payoutSpeed: null,
}
const flatFee: TierTerms = { ...limits, feeFixed: 50n, feeBps: 0, feeMin: null, feeMax: null, feePayer: 'member' }

const tiers: Record<string, { currency: Currency; terms: TierTerms }> = {
  Bronze: { currency: 'GBP', terms: { ...flatFee, feeBps: 100, feeMin: 50n, feeMax: 300n } },
  Silver: { currency: 'GBP', terms: flatFee },
  Gold: { currency: 'GBP', terms: { ...flatFee, feePayer: 'employer' } },
  'Silver EU': { currency: 'EUR', terms: flatFee },
}

// Enough for months of withdrawals, so that the float stays above zero during testing.
const funding: Money[] = [
  { amount: 2_000_000n, currency: 'GBP' },
  { amount: 500_000n, currency: 'EUR' },
]

type DemoMember = {
  name: string
  tier: string
  /** `sort code account number`, or an IBAN; the UK ones pass their modulus check. */
  account: string | null
  /** Pay of each cycle, in minor units. */
  pay: bigint
  /** Withdrawals in the open cycle, and in the previous cycle. */
  withdrawn?: bigint[]
  withdrawnBefore?: bigint[]
  stays?: 'invited' | 'inactive'
}

const ofTier =
  (tier: string) =>
  (name: string, account: string | null, pay: bigint, rest?: Partial<DemoMember>): DemoMember => {
    return { name, tier, account, pay, ...rest }
  }
const bronze = ofTier('Bronze')
const silver = ofTier('Silver')
const gold = ofTier('Gold')
const silverEu = ofTier('Silver EU')

// The first member is the one in the printed example request, with enough pay to run it many times.
const demoMembers: DemoMember[] = [
  bronze('Sam Okafor', '089999 66374958', 84_250n, { withdrawn: [5_000n, 2_500n], withdrawnBefore: [12_000n] }),
  bronze('Priya Sharma', '107999 88837491', 61_480n, { withdrawn: [10_000n], withdrawnBefore: [8_000n, 3_500n] }),
  bronze('Tomasz Nowak', '202959 63748472', 73_905n, { withdrawnBefore: [15_000n] }),
  bronze('Grace Adeyemi', '871427 46238510', 42_300n, { withdrawn: [4_000n, 4_000n, 4_000n] }),
  bronze('Liam Murphy', '872427 46238510', 55_120n),
  bronze('Fatima Khan', '820000 73688637', 38_640n, { withdrawn: [20_000n], withdrawnBefore: [9_000n] }),
  bronze('Jack Evans', '827999 73988638', 900n),
  silver('Aisha Bello', '827101 28748352', 90_015n, {
    withdrawn: [15_000n, 12_500n],
    withdrawnBefore: [20_000n, 5_000n],
  }),
  silver('Daniel Wright', '134020 63849203', 47_760n, { withdrawnBefore: [4_500n] }),
  silver('Chloe Hughes', '118765 64371389', 66_300n, { withdrawn: [1_000n] }),
  silver('Marek Kowalski', '938611 07806039', 29_990n),
  silver('Zara Ahmed', '938600 42368003', 51_235n, { withdrawn: [6_000n] }),
  silver('Oliver Jones', '938063 55065200', 70_000n),
  gold('Niamh Kelly', '772798 99345694', 112_400n, { withdrawn: [20_000n, 20_000n], withdrawnBefore: [18_000n] }),
  gold('Kwame Mensah', '086090 06774744', 98_750n),
  gold('Sophie Clarke', '309070 02355688', 105_060n, { withdrawn: [7_500n], withdrawnBefore: [2_000n] }),
  gold('Ravi Patel', '309070 12345668', 0n),
  silverEu('Mia Schulz', 'DE89370400440532013000', 81_200n, { withdrawn: [10_000n], withdrawnBefore: [6_000n] }),
  silverEu('Hugo Lefevre', 'FR1420041010050500013M02606', 64_550n, { withdrawnBefore: [11_000n] }),
  silverEu('Sanne de Vries', 'NL91ABNA0417164300', 77_310n, { withdrawn: [3_000n] }),
  silverEu('Lucia Garcia', 'ES9121000418450200051332', 58_900n),
  silver('Harry Failing', '089999 66374959', 40_000n),
  silver('Ella Noaccount', null, 35_000n),
  bronze('Ben Invited', '180002 00000190', 20_000n, { stays: 'invited' }),
  bronze('Ruth Leaver', '070116 34012583', 0n, { stays: 'inactive' }),
]

/**
 * Seeds an empty sandbox with a partner, its tiers, members, pay and some history. Uses the same operations as a partner's own requests.
 * @param rail a rail with files, in euros; without it, the simulated bank pays every withdrawal
 * @returns the partner's API key, or undefined if the database already has partners
 */
export async function seedDemo(
  db: Db,
  now: Date,
  { rail }: { rail?: FileRailSettings | undefined } = {},
): Promise<{ secret: string } | undefined> {
  const seeded = await db.transaction().execute(async tx => {
    if ((await listPartners(tx)).length > 0) return undefined
    const { startsAt, turnsAt } = cyclesUntil(now)
    const partner = await createPartner(tx, {
      name: partnerName,
      settings: { autoActivate: true, graceMinutes: 0 },
      now: startsAt,
    })
    const team = await buildPreviousCycle(tx, { partner, startsAt, turnsAt })
    const at = within(turnsAt, now)
    await payTwice(tx, { partner, team, at })
    await withdrawAll(tx, { partner, team, amountsOf: ({ withdrawn }) => withdrawn, at })
    await withdrawInVain(tx, { partner, team, at })
    await applyFinalStates(tx, { partner, team, now: at(0.95) })
    if (rail !== undefined) await fillRail(tx, { partner, rail, ...railPayments(team), at })
    await withdrawAndHold(tx, { partner, team, now })
    return await createKey(tx, { partnerId: partner.id, mode: 'sandbox', scopes, expiresAt: null, now })
  })
  if (seeded !== undefined && rail !== undefined) await importUnexplained(db, { rail, now })
  return seeded
}

function railPayments(team: Team) {
  return {
    answered: [
      { memberId: memberNamed(team, 'Hugo Lefevre').memberId, amount: 12_000n },
      { memberId: memberNamed(team, 'Lucia Garcia').memberId, amount: 6_000n },
    ],
    unapproved: [
      { memberId: memberNamed(team, 'Mia Schulz').memberId, amount: 15_000n },
      { memberId: memberNamed(team, 'Sanne de Vries').memberId, amount: 8_000n },
    ],
    open: [{ memberId: memberNamed(team, 'Hugo Lefevre').memberId, amount: 4_500n }],
  }
}

function memberNamed(team: Team, name: string): Team[number] {
  const member = team.find(({ demo }) => demo.name === name)
  assert(member !== undefined)
  return member
}

/** Creates tiers, members and a whole pay cycle with pay and withdrawals, which has just closed. */
export async function buildPreviousCycle(
  tx: Tx,
  { partner, startsAt, turnsAt }: { partner: Partner; startsAt: Date; turnsAt: Date },
): Promise<Team> {
  await payCycles.openFirst(tx, { partner, now: startsAt })
  await setUp(tx, { partner, now: startsAt })
  const before = within(startsAt, turnsAt)
  const team = await inviteAll(tx, { partner, now: before(0.1) })
  await payTwice(tx, { partner, team, at: before })
  await withdrawAll(tx, { partner, team, amountsOf: ({ withdrawnBefore }) => withdrawnBefore, at: before })
  await closeIfOver(tx, { partnerId: partner.id, now: turnsAt })
  return team
}

/** Creates the tiers that the partner does not have yet, and funds the float. */
export async function setUp(tx: Tx, { partner, now }: { partner: Partner; now: Date }): Promise<void> {
  const partnerId = partner.id
  const existing = await listCurrencies(tx, partnerId)
  for (const [name, { currency, terms }] of Object.entries(tiers)) {
    if (!existing.has(name)) await setTier(tx, { partnerId, name, currency, terms, now })
  }
  for (const amount of funding) await float.fund(tx, { partnerId, amount, now })
}

/** The start of the previous cycle, and the start of the open one. */
export function cyclesUntil(
  now: Date,
  { timeZone, cycleSchedule: every, cycleAnchor: anchor }: CycleTerms = defaultSettings,
): { startsAt: Date; turnsAt: Date } {
  const open = cycleOf({ every, anchor }, dayIn(timeZone, now))
  const before = cycleOf({ every, anchor }, addDays(open.startDate, -1))
  return { startsAt: startOfDay(timeZone, before.startDate), turnsAt: startOfDay(timeZone, open.startDate) }
}

type CycleTerms = Pick<Partner, 'timeZone' | 'cycleSchedule' | 'cycleAnchor'>

/** An instant at the given fraction of an interval. */
type At = (share: number) => Date

export function within(from: Date, to: Date): At {
  return share => new Date(from.getTime() + (to.getTime() - from.getTime()) * share)
}

/** The body of a working request for an intent, printed at the start of a sandbox. */
export async function exampleRequest(db: Reader) {
  // The demo partner is the oldest, because it is seeded into an empty database. A later partner may share its name.
  const partner = (await listPartners(db)).findLast(({ name }) => name === partnerName)
  const [first] = demoMembers
  if (partner === undefined || first === undefined) return undefined
  const page = { skip: 0, take: 1 }
  const [member] = await members.list(db, { partnerId: partner.id, filter: { emails: [emailOf(first)] }, page })
  if (member === undefined) return undefined
  return { memberId: member.id, amount: { amount: 5_000, currency: 'GBP' } }
}

export type Team = { demo: DemoMember; memberId: string }[]

export async function inviteAll(tx: Tx, { partner, now }: { partner: Partner; now: Date }): Promise<Team> {
  const team: Team = []
  for (const [index, demo] of demoMembers.entries()) {
    const [firstName = '', ...rest] = demo.name.split(' ')
    const body = {
      email: emailOf(demo),
      firstName,
      lastName: rest.join(' '),
      // From the range that Ofcom reserves for use in drama.
      phone: `+447700900${String(100 + index)}`,
      tier: demo.tier,
      workerId: `AC-${String(1001 + index)}`,
      accountDetails: demo === failing ? null : accountOf(demo),
    }
    const rules = { ...partner, autoActivate: demo.stays !== 'invited' }
    const { id } = await members.invite(tx, { partner: rules, body, now })
    team.push({ demo, memberId: id })
  }
  return team
}

export async function payTwice(tx: Tx, { partner, team, at }: { partner: Partner; team: Team; at: At }): Promise<void> {
  const first = (pay: bigint) => (pay * 3n) / 8n
  await payAll(tx, { partner, team, shareOf: first, now: at(0.2) })
  await payAll(tx, { partner, team, shareOf: pay => pay - first(pay), now: at(0.5) })
}

async function payAll(
  tx: Tx,
  { partner, team, shareOf, now }: { partner: Partner; team: Team; shareOf: (pay: bigint) => bigint; now: Date },
): Promise<void> {
  const lines = team.map(({ demo, memberId }) => ({ memberId, amount: shareOf(demo.pay), currency: currencyOf(demo) }))
  await payRuns.create(tx, {
    partner: { id: partner.id, graceMinutes: 0 },
    lines: lines.filter(line => line.amount > 0n),
    fileName: `pay-${dayIn(partner.timeZone, now)}.csv`,
    now,
  })
}

type TeamWithdrawals = { partner: Partner; team: Team; amountsOf: (demo: DemoMember) => bigint[] | undefined; at: At }

export async function withdrawAll(tx: Tx, { partner, team, amountsOf, at }: TeamWithdrawals): Promise<void> {
  const all = team.flatMap(({ demo, memberId }) =>
    (amountsOf(demo) ?? []).map(amount => ({ memberId, amount: { amount, currency: currencyOf(demo) } })),
  )
  for (const [index, { memberId, amount }] of all.entries()) {
    const now = at(0.55 + (0.35 * index) / all.length)
    const intent = await intents.create(tx, { partner, memberId, amount, now })
    await complete(tx, { partner, intentId: intent.id, now, clockOffsetMs: 0 })
    const dueAt = new Date(now.getTime() + partner.holdSeconds * 1_000)
    // In the first minutes of a cycle the hold has not ended yet; the worker takes over from there.
    if (dueAt <= at(1)) await payOut(tx, { partnerId: partner.id, now: dueAt })
  }
}

/** One withdrawal of each kind that gives the money back: cancelled, failed and returned. */
async function withdrawInVain(tx: Tx, { partner, team, at }: { partner: Partner; team: Team; at: At }): Promise<void> {
  const partnerId = partner.id
  const now = at(0.92)
  const dueAt = new Date(now.getTime() + partner.holdSeconds * 1_000)
  // In the first minutes of a cycle the hold has not ended yet.
  if (dueAt > at(0.95)) return
  const withdraw = (name: string, amount: bigint) => withdrawOne(tx, { partner, team, name, amount, now })
  const cancelled = await withdraw('Oliver Jones', 4_000n)
  await cancel(tx, { partnerId, withdrawalId: cancelled, now: dueAt })
  const returned = await withdraw('Kwame Mensah', 9_000n)
  // The simulated bank refuses the net amount of 66.01.
  await withdraw('Daniel Wright', 6_651n)
  await payOut(tx, { partnerId, now: dueAt })
  const reason = 'The account holder does not match'
  await applyBankReport(tx, { partnerId, withdrawalId: returned, outcome: 'returned', reason, now: at(0.95) })
}

/** One withdrawal that the bank has not answered, and one that can be cancelled for a day. */
async function withdrawAndHold(
  tx: Tx,
  { partner, team, now }: { partner: Partner; team: Team; now: Date },
): Promise<void> {
  const partnerId = partner.id
  const atOnce = { ...partner, holdSeconds: 0 }
  const withdrawalId = await withdrawOne(tx, { partner: atOnce, team, name: 'Liam Murphy', amount: 7_000n, now })
  await instruct(tx, { partnerId, withdrawalId, outcome: 'hold', reason: null, restriction: null, now })
  await payOut(tx, { partnerId, now })
  const nextDay = { ...partner, holdSeconds: 86_400 }
  await withdrawOne(tx, { partner: nextDay, team, name: 'Marek Kowalski', amount: 4_500n, now })
}

async function withdrawOne(
  tx: Tx,
  { partner, team, name, amount, now }: { partner: Partner; team: Team; name: string; amount: bigint; now: Date },
): Promise<string> {
  const { memberId, demo } = memberNamed(team, name)
  const asked = { memberId, amount: { amount, currency: currencyOf(demo) } }
  const intent = await intents.create(tx, { partner, ...asked, now })
  return (await complete(tx, { partner, intentId: intent.id, now, clockOffsetMs: 0 })).withdrawalId
}

/** Pays out like the worker, but in this transaction, so that the demo leaves no work behind. */
async function payOut(tx: Tx, { partnerId, now }: { partnerId: string; now: Date }): Promise<void> {
  const bank = simulatedBank({ db: tx, now: () => now })
  const payouts = await submitDue(tx, {
    now,
    countMax: bank.paymentsMax,
    nextPollAt: backOffFrom(now),
    scope: { only: partnerId },
    nameForBank: async (claimTx, claimed) => await createPayouts(claimTx, { rail: bank.name, claimed, now }),
  })
  const withdrawalIds = new Map(payouts.map(({ reference, withdrawalId }) => [reference, withdrawalId]))
  const reports = await bank.submit(payouts.filter(hasAccount), AbortSignal.timeout(bank.callMsMax))
  for (const { reference, outcome, reason } of reports) {
    if (outcome === 'pending') continue
    assert(outcome === 'paid' || outcome === 'failed', `The demo's ${reference} is ${outcome}`)
    const withdrawalId = withdrawalIds.get(reference)
    assert(withdrawalId !== undefined)
    await applyBankReport(tx, { partnerId, withdrawalId, outcome, reason, now })
  }
}

async function applyFinalStates(
  tx: Tx,
  { partner, team, now }: { partner: Partner; team: Team; now: Date },
): Promise<void> {
  for (const { demo, memberId } of team) {
    if (demo.stays === 'inactive') await members.change(tx, { partner, command: { type: 'Offboard', memberId }, now })
    const account = accountOf(demo)
    if (demo === failing && account !== null)
      await setUncheckedAccount(tx, { partnerId: partner.id, memberId, account, now })
  }
}

// Its account number has a wrong digit, as legacy data might.
const failing = demoMembers.find(({ name }) => name === 'Harry Failing')

function emailOf({ name }: DemoMember): string {
  return `${name.toLowerCase().replaceAll(' ', '.')}@example.com`
}

function currencyOf({ tier }: DemoMember): Currency {
  return tiers[tier]?.currency ?? 'GBP'
}

function accountOf({ name, account }: DemoMember): BankAccount | null {
  if (account === null) return null
  const [sortCode = '', accountNumber] = account.split(' ')
  return accountNumber === undefined
    ? { accountHolder: name, iban: account }
    : { accountHolder: name, sortCode, accountNumber }
}
