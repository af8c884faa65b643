import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import pg from 'pg'
import pino, { type Logger } from 'pino'
import { inject, type ProvidedContext } from 'vitest'
import { buildApp } from '../../src/app.ts'
import type { BankAccount } from '../../src/bank-accounts/rules.ts'
import { connect } from '../../src/database/connect.ts'
import type { Db, Tx } from '../../src/database/database.ts'
import { exposeInstallation } from '../../src/diagnosis/installation-metrics.ts'
import type { ApiContext, App } from '../../src/http/server/server.ts'
import type { Lanes } from '../../src/kernel/lanes.ts'
import type { Currency } from '../../src/kernel/money.ts'
import { defaultRetention } from '../../src/kernel/retention.ts'
import { ProcessMetrics } from '../../src/metrics/process-metrics.ts'
import { createKey, type Scope, scopes } from '../../src/partners/api-keys.ts'
import { createOperatorKey } from '../../src/partners/operator-keys.ts'
import { claimMode, createPartner, type Mode, type Partner, type PartnerSettings } from '../../src/partners/partners.ts'
import * as payCycles from '../../src/pay-cycles/pay-cycles.ts'
import type { FileRailSettings } from '../../src/payouts/books/file-rail-settings.ts'
import type { Channel } from '../../src/payouts/channels/channel.ts'
import { toRail } from '../../src/payouts/channels/files/configure.ts'
import { RequestLog } from '../../src/requests/recorder.ts'
import { setUncheckedAccount } from '../../src/sandbox/unchecked-account.ts'
import { openSealer } from '../../src/sealing/installation-keys.ts'
import type { TierTerms } from '../../src/tiers/terms.ts'
import { setTier } from '../../src/tiers/tiers.ts'
import { Fence } from '../../src/webhooks/fence.ts'
import type { ApiResponse, Call } from './api-response.ts'
import { cloneOnNodes, copyOnNodes, dropDistributed } from './citus.ts'
import { assertCommonParts, verifyResponse } from './contract.ts'
import { keySettings, keySource } from './installation-key.ts'
import { lanesOfTests } from './lanes.ts'
import { bronze, euAccount, gold, goodAccount, silver } from './samples.ts'
import { type NewMember, verbsOf } from './verbs.ts'

/** A clock that only moves when a test moves it. */
export type TestClock = {
  now(): Date
  advance(by: { minutes?: number; days?: number; seconds?: number }): void
  set(instant: Date): void
}

/** A partner with a key, an open cycle and the tiers that the tests use. */
export type TestPartner = { partner: Partner; key: string; payCycle: payCycles.PayCycle }

/**
 * Sets up a separate database (cloned from the migrated template), the whole API on it, a test clock and two partners. Call
 * `stop` in `afterAll`. Every response is validated against openapi.json.
 */
export async function startHarness({
  mode = 'sandbox',
  hasRail = mode === 'sandbox',
  bankOf = () => (hasRail ? (mode === 'sandbox' ? 'simulated' : 'connected') : null),
  channels,
  rails = [],
  startAt = new Date('2026-03-10T09:00:00.000Z'),
  postgres: { host, user, owner, superuser, nodesTemplate } = inject('postgres'),
  log = pino({ level: 'silent' }),
  lanes = lanesOfTests,
  console,
  hasDocs = false,
  tracing,
}: {
  mode?: Mode
  /** Whether the API believes that withdrawals can be paid out. */
  hasRail?: boolean
  bankOf?: ApiContext['bankOf']
  /** The channels of a sandbox; by default the simulated bank. */
  channels?: Channel[]
  /** The file rails whose bank a sandbox simulates. */
  rails?: FileRailSettings[]
  startAt?: Date
  postgres?: ProvidedContext['postgres']
  log?: Logger
  lanes?: Lanes
  /** How users sign in to the console. */
  console?: ApiContext['console']
  /** Whether it serves the documentation, which takes as long to build as many tests. */
  hasDocs?: boolean
  tracing?: ApiContext['tracing']
} = {}) {
  const database = `test_${randomBytes(6).toString('hex')}`
  if (nodesTemplate === undefined)
    await copyDatabase({ host, owner, superuser, from: 'template_midmonth', to: database })
  else await cloneOnNodes({ database, template: nodesTemplate })
  const databases = connect({ host, user, database }, { log, connectionsMax: 30, lanes })
  // For changes that bypass the service. Connects on first use.
  const asOwner = connect({ host, user: owner, database }, { log, connectionsMax: 3, lanes })
  const clock = testClock(startAt)
  const fence = new Fence({ allowsHttp: mode === 'sandbox', allowsLoopback: true, refusedPorts: [5432] })
  const { db } = databases
  const inTx = <T>(work: (tx: Tx) => Promise<T>) => db.transaction().execute(work)
  await inTx(tx => claimMode(tx, { mode, now: clock.now() }))
  const sealer = await openSealer(db, keySource)
  const erasures = {
    journal: path.join(tmpdir(), `midmonth-${database}-erasures.jsonl`),
    evidenceDays: defaultRetention.paymentEvidence,
    backupDays: 35,
  }
  const requestLog = new RequestLog({ withCopying: databases.withCopying, log })
  const recordRequest = requestLog.record
  const metrics = {
    process: new ProcessMetrics(databases.pools),
    readInstallation: () => exposeInstallation(db, { mode, retention: defaultRetention, now: clock.now() }),
    token: metricsToken,
  }
  const app = await buildApp(
    {
      ...databases,
      metrics,
      tracing,
      sealer,
      log,
      now: clock.now,
      mode,
      bankOf,
      recordRequest,
      console,
      erasures,
    },
    { hasDocs, fence, channels, rails: rails.map(toRail) },
  )
  const addressOf = (role: string) => `postgres://${role}@/${database}?host=${encodeURIComponent(host)}`
  const mine = await addPartner(db, { clock, mode, name: 'Acme Couriers' })
  const other = await addPartner(db, { clock, mode, name: 'Other Partner' })

  const call = callerOf(app)

  function callerOf(app: App) {
    return (method: string, path: string, call: Call = {}) => send(app, { method, path }, call)
  }

  /**
   * Invites a member (active at once), and creates a pay run if `available` is not 0.
   * @param options.tier by default the tier `Silver` of the currency
   */
  async function addMember({
    available = 0,
    currency = 'GBP',
    tier = currency === 'EUR' ? 'Silver EU' : 'Silver',
    account = currency === 'EUR' ? euAccount : goodAccount,
    key,
  }: NewMember = {}): Promise<string> {
    const email = `member-${randomBytes(5).toString('hex')}@example.com`
    const invited = await call('POST', '/v1/members', {
      key,
      body: { email, firstName: 'Sam', lastName: 'Okafor', tier, accountDetails: account },
    })
    if (invited.status !== 201) throw new Error(`Setting up a member failed: ${invited.text}`)
    if (available > 0) {
      const body = { payDetails: [{ memberId: invited.body.memberId, money: { amount: available, currency } }] }
      const paid = await call('POST', '/v1/pay/run', { key, body })
      if (paid.status !== 201) throw new Error(`Setting up a pay run failed: ${paid.text}`)
    }
    return invited.body.memberId
  }

  async function send(
    app: App,
    { method, path }: { method: string; path: string },
    { body, raw, headers = {}, key = mine.key }: Call,
  ): Promise<ApiResponse> {
    const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const injected = await app.inject({
      method: method as 'GET',
      url: path,
      headers: {
        ...(key === null ? {} : { 'x-api-key': key }),
        ...(payload === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(payload === undefined ? {} : { payload }),
    })
    const text = injected.body
    const response: ApiResponse = {
      status: injected.statusCode,
      headers: injected.headers as Record<string, string | undefined>,
      body: /json/.test(String(injected.headers['content-type'])) ? JSON.parse(text) : text,
      text,
    }
    // openapi.json declares the responses to requests with an API key.
    if (headers.cookie === undefined && !path.startsWith('/console/')) verifyResponse(method, path, response)
    else assertCommonParts(response)
    return response
  }

  return {
    app: app as App,
    /** Connected with the app role and limited to its rights. */
    ...databases,
    /** Connected as the owner of the tables, for reads and changes that the app role may not make. */
    ownerDb: asOwner.db,
    clock,
    sealer,
    metrics,
    erasureJournal: erasures.journal,
    /** Writes all requests so far to the request log. */
    flushRequestLog: () => requestLog.flush(),
    host,
    database,
    user,
    owner,
    superuser,
    /** For commands that use the same database. */
    settings: {
      ...{ DATABASE_URL: addressOf(user), DATABASE_OWNER_URL: addressOf(owner), MIDMONTH_LANES: lanes },
      ...keySettings,
    },
    mode,
    fence,
    partner: mine.partner,
    key: mine.key,
    payCycle: mine.payCycle,
    other,
    call,
    addPartner: (name: string, settings?: PartnerSettings) =>
      addPartner(db, { clock, mode, name, ...(settings ? { settings } : {}) }),
    inTx,
    addTier: (name: string, terms: TierTerms, { currency = 'GBP' as Currency, partnerId = mine.partner.id } = {}) =>
      inTx(tx => setTier(tx, { partnerId, name, currency, terms, now: clock.now() })),
    addKey: (granted: readonly Scope[], { expiresAt = null as Date | null, partnerId = mine.partner.id } = {}) =>
      inTx(tx => createKey(tx, { partnerId, mode, scopes: granted, expiresAt, now: clock.now() })),
    /** Creates an operator key, and returns a function that calls the operators' API with it. */
    async addOperator(name = 'Operator') {
      const asked = { name, createdBy: 'test@host', expiresAt: null, now: clock.now() }
      const { key, secret } = await inTx(tx => createOperatorKey(tx, asked))
      const operate = (method: string, path: string, options: Call = {}) =>
        call(method, `/operator/v1${path}`, { key: secret, ...options })
      return { id: key.id, secret, call: operate }
    },
    addMember,
    /** Sets a member's account without checking it. */
    setUncheckedAccount: ({
      partnerId = mine.partner.id,
      ...of
    }: {
      partnerId?: string
      memberId: string
      account: BankAccount
    }) => inTx(tx => setUncheckedAccount(tx, { partnerId, ...of, now: clock.now() })),
    ...verbsOf({ call, addMember, db, clock, log, channels, rails }),
    /**
     * Stands in for a second process: the same API with separate connections.
     * @param options.channels replaces the channels of the first process
     * @param options.moveMsMax how long requests of the second process wait for a move of a clock
     */
    async startSecond(options: { channels?: Channel[]; moveMsMax?: number } = {}) {
      const databases = connect({ host, user, database }, { log, connectionsMax: 30, lanes })
      await openSealer(databases.db, keySource)
      const context = { ...databases, sealer, log, now: clock.now, mode, bankOf, erasures }
      const secondApp = await buildApp(context, { fence, channels, ...options })
      const callSecond = callerOf(secondApp)
      return {
        call: callSecond,
        ...verbsOf({ call: callSecond, addMember, db, clock, log, channels, rails }),
        async stop() {
          await secondApp.close()
          await databases.close()
        },
      }
    },
    async stop() {
      await close()
      if (nodesTemplate !== undefined) await dropDistributed(database)
    },
    /** Stops, but keeps the database, and a copy of it as a backup. @returns how to remove them */
    async stopWithCopy(copy: string): Promise<() => Promise<void>> {
      await close()
      if (nodesTemplate === undefined) await copyDatabase({ host, owner, superuser, from: database, to: copy })
      else await copyOnNodes({ from: database, to: copy })
      return async () => {
        if (nodesTemplate !== undefined) for (const each of [database, copy]) await dropDistributed(each)
      }
    },
  }

  async function close(): Promise<void> {
    await app.close()
    await requestLog.close()
    await rm(erasures.journal, { force: true })
    await Promise.all([databases.close(), asOwner.close()])
  }
}
export type Harness = Awaited<ReturnType<typeof startHarness>>

/** The token with which tests read metrics. */
export const metricsToken = 'a-token-of-tests'

async function addPartner(
  db: Db,
  { clock, mode, name, settings }: { clock: TestClock; mode: Mode; name: string; settings?: PartnerSettings },
): Promise<TestPartner> {
  return await db.transaction().execute(async tx => {
    const now = clock.now()
    const partner = await createPartner(tx, {
      name,
      // With a frozen clock, the rate limiter would never refill.
      settings: {
        autoActivate: true,
        graceMinutes: 0,
        requestsPerSecond: 1_000_000,
        requestsBurst: 1_000_000,
        ...settings,
      },
      now,
    })
    const payCycle = await payCycles.openFirst(tx, { partner, now })
    for (const [tier, terms] of Object.entries({ Bronze: bronze, Silver: silver, Gold: gold })) {
      await setTier(tx, { partnerId: partner.id, name: tier, currency: 'GBP', terms, now })
    }
    await setTier(tx, { partnerId: partner.id, name: 'Silver EU', currency: 'EUR', terms: silver, now })
    const { secret } = await createKey(tx, { partnerId: partner.id, mode, scopes, expiresAt: null, now })
    return { partner, key: secret, payCycle }
  })
}

async function copyDatabase({
  host,
  owner,
  superuser,
  from,
  to,
}: {
  host: string
  owner: string
  superuser: string
  from: string
  to: string
}): Promise<void> {
  const client = new pg.Client({ host, user: superuser, database: 'postgres' })
  await client.connect()
  try {
    // Only one session at a time can copy a template, and test files run concurrently.
    await client.query('select pg_advisory_lock(1)')
    await client.query(`create database ${to} template ${from} strategy file_copy owner ${owner}`)
  } finally {
    await client.end()
  }
}

function testClock(startAt: Date): TestClock {
  let instant = startAt
  return {
    now: () => new Date(instant),
    set(to) {
      instant = to
    },
    advance({ minutes = 0, days = 0, seconds = 0 }) {
      instant = new Date(instant.getTime() + seconds * 1_000 + minutes * 60_000 + days * 86_400_000)
    },
  }
}
