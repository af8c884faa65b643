import { expect, test } from 'vitest'
import { euroRail, FileBank } from '../../test/banks/file-bank.ts'
import { defaultRetention } from '../kernel/retention.ts'
import type { Batch } from '../payouts/books/batches.ts'
import type { FileRailSettings } from '../payouts/books/file-rail-settings.ts'
import { target } from '../payouts/calendars/target.ts'
import { uk } from '../payouts/calendars/uk.ts'
import { toRail as adyenToRail } from '../payouts/channels/adyen/configure.ts'
import { toAdyenSettings } from '../payouts/channels/adyen/settings.ts'
import { toRail as filesToRail } from '../payouts/channels/files/configure.ts'
import type { KeyCopy } from '../sealing/key-copies.ts'
import { type CheckedRail, checkRails, type DatabaseFacts, type SettingsFacts } from './finding.ts'
import { diagnose } from './findings.ts'

const now = new Date('2026-11-20T10:00:00Z')
const settings: SettingsFacts = {
  ...{ now, mode: 'live', railsFile: '/rails.json', publicUrl: 'https://pay.example.com', retention: defaultRetention },
  rails: [checkedFiles()],
}
const database: DatabaseFacts = {
  isEmbedded: false,
  installationKey: { name: '0f3a in /etc/midmonth/installation.key', fault: undefined },
  keyCopies: [keyCopy('0f3a')],
  membersWithoutKeys: { count: 0, memberIds: [] },
  erasureJournal: { place: '/etc/midmonth/erasures.jsonl', unrecorded: 0, fault: undefined },
  excess: undefined,
  archiving: { isOn: true, archivedAt: now, failedAt: null },
  toContract: [],
  replication: { isSynchronous: false, replicas: [] },
  defaultPartitions: [],
  cluster: undefined,
  partners: [],
  floats: [],
  instantTiers: [],
  keys: [],
  endpoints: [],
  workers: [{ workerId: 'wrk_1', host: 'a', processId: 1, startedAt: now, beatAt: now, isAlive: true }],
  operators: 2,
  batches: [],
  heldRails: [],
  brakes: [],
  restore: undefined,
  openExceptions: 0,
  importing: [],
  differences: [],
  lastBackupAt: now,
  overdueKinds: [],
  verification: undefined,
}
function keyCopy(provider: string): KeyCopy {
  return { provider, numbers: [1], isComplete: true, createdAt: now }
}

const batch: Batch = {
  id: 'bat_1',
  messageId: 'MMB1',
  rail: 'euro-files',
  currency: 'EUR',
  debtor: 'default',
  valueDate: '2026-11-20',
  isInstant: false,
  cutOffAt: new Date('2026-11-20T14:00:00Z'),
  status: 'building',
  held: false,
  paymentCount: 2,
  controlTotal: 12_345n,
  fileName: null,
  fileSha256: null,
  nameCheck: null,
  closedAt: null,
  approvedAt: null,
  approvedAutomatically: false,
  sendingAt: null,
  sentAt: null,
  acknowledgedAt: null,
  endedAt: null,
}

/** A rail of files, in which its channel has found nothing. */
function checkedFiles(changes: Partial<FileRailSettings> = {}): CheckedRail {
  return { ...filesToRail(euroRail(changes)), findings: [] }
}

function said(check: string, changes: Partial<SettingsFacts & DatabaseFacts>): string[] {
  return diagnose({ ...settings, ...changes }, { ...database, ...changes })
    .filter(each => each.check === check)
    .map(({ level, sentence }) => `${level}: ${sentence}`)
}

test('a calendar is a warning 89 days before its end, and is missing after it', () => {
  const at = (day: string) =>
    said('calendars', { now: new Date(`${day}T12:00:00Z`), rails: [checkedFiles({ calendar: uk }), checkedFiles()] })
  expect(at('2028-10-02')[0]).toBe(
    'ok: The rail euro-files knows the banking days until 2028-12-31; the rail euro-files knows the banking days until 2099-12-31',
  )
  expect(at('2028-10-03')).toEqual([
    'warning: The UK bank holiday calendar of the rail euro-files ends on 2028-12-31, in 89 days: update Midmonth, or set closedDaysUntil',
  ])
  expect(at('2029-01-01')).toEqual([
    'missing: The UK bank holiday calendar of the rail euro-files ended on 2028-12-31: update Midmonth, or set closedDaysUntil',
  ])
  expect(said('calendars', { rails: [checkedFiles({ calendar: null })] })).toEqual(['ok: No rail needs banking days'])
  expect(target.validUntil).toBe('2099-12-31')
})

test('fewer than two operators, an address without TLS, and a check without findings', () => {
  expect(said('operators', {})).toEqual(['ok: 2 operators can sign in to the console'])
  expect(said('operators', { operators: 1 })[0]).toMatch(/^warning: One operator can sign in/)
  expect(said('operators', { operators: 0 })[0]).toMatch(/^warning: No operator can sign in/)
  expect(said('TLS', {})).toEqual(['ok: People and partners reach the service at https://pay.example.com'])
  expect(said('TLS', { publicUrl: 'http://pay.example.com' })[0]).toMatch(/^warning: .* without TLS/)
  expect(said('TLS', { publicUrl: '' })[0]).toMatch(/^missing: MIDMONTH_PUBLIC_URL is not set/)
  expect(said('rails', { rails: [] })).toEqual([])
})

test('a live installation with rows in a default partition', () => {
  const defaultPartitions = ['ledger_transfers_default']
  expect(said('partitions', {})).toEqual(['ok: Every month with events or transfers has its partition'])
  expect(said('partitions', { defaultPartitions })[0]).toMatch(/^warning: ledger_transfers_default is not empty: /)
  expect(said('partitions', { mode: 'sandbox', defaultPartitions })).toEqual([])
})

test('a distributed database with a node that is lost, a table that is not spread, and a transaction that was left', () => {
  const cluster = { nodes: 3, unreachable: [], misplaced: [], prepared: [] }
  expect(said('cluster', {})).toEqual([])
  expect(said('cluster', { cluster })).toEqual(['ok: 3 servers hold the tables and answer'])
  expect(
    said('cluster', {
      cluster: {
        nodes: 3,
        unreachable: ['db-1:5432'],
        misplaced: ['bonuses'],
        prepared: [{ node: 'db-2:5432', count: 1 }],
      },
    }).map(sentence => sentence.slice(0, 75)),
  ).toEqual([
    'missing: The server db-1:5432 does not answer the coordinator; requests of ',
    'missing: bonuses is not spread over the nodes as the program expects',
    'warning: db-2:5432 has 1 transaction prepared minutes ago and never ended; ',
  ])
})

test('data that is past its retention', () => {
  expect(said('retention', {})).toEqual(['ok: No data is past its retention'])
  expect(said('retention', { overdueKinds: ['requests', 'auditAddresses'] })).toEqual([
    'warning: Data is past its retention: the request log (kept for 7 days); the addresses in the audit log that changes and sign-ins came from (kept for 90 days); a worker removes it',
  ])
})

test('a live installation without a backup of the last 26 hours', () => {
  const hoursAgo = (hours: number) => new Date(now.getTime() - hours * 3_600_000)
  expect(said('backups', { lastBackupAt: hoursAgo(26) })).toEqual([
    'ok: The last backup was taken at 2026-11-19T08:00:00.000Z',
  ])
  expect(said('backups', { lastBackupAt: hoursAgo(26.01) })[0]).toMatch(
    /^warning: The last recorded backup was taken at 2026-11-19T07/,
  )
  expect(said('backups', { lastBackupAt: null })).toEqual(['warning: No backup has been recorded'])
  expect(said('backups', { mode: 'sandbox', lastBackupAt: null })).toEqual([])
  const commandOf = (isEmbedded: boolean) =>
    diagnose(settings, { ...database, isEmbedded, lastBackupAt: null }).find(({ check }) => check === 'backups')
      ?.command
  expect(commandOf(true)).toBe('midmonth backup take')
  expect(commandOf(false)).toMatch(/^pg_dump .* && midmonth backup recorded$/)
})

test('a rail that cannot read returns is a warning', () => {
  const rail = checkedFiles()
  const bacs = checkedFiles({ name: 'bacs', format: { ...euroRail().format, readsReturns: false } })
  expect(said('returns', { rails: [rail] })).toEqual(['ok: Every rail reads which payments came back'])
  expect(said('returns', { rails: [rail, bacs] })).toEqual([
    'warning: The rail bacs has no setting returns, so a payment that comes back stays paid, and the member does not get the money again',
  ])
})

test('replicas of a live installation that no commit waits for are a warning', () => {
  const replicas = ['db-2', 'db-3'].map(name => ({ name, state: null, lagSeconds: null }))
  const of = (isSynchronous: boolean, changes: Partial<SettingsFacts> = {}) =>
    said('replication', { replication: { isSynchronous, replicas }, ...changes })
  expect(said('replication', {})).toEqual([])
  expect(of(true)).toEqual(['ok: Every commit waits for a replica'])
  expect(of(false)[0]).toMatch(/^warning: All 2 replicas are asynchronous: after a failover, /)
  expect(of(false, { mode: 'sandbox' })).toEqual([])
})

test('migrations that wait to be contracted are a hint', () => {
  expect(said('migrations', {})).toEqual([])
  expect(said('migrations', { toContract: ['0002_more'] })).toEqual([
    'hint: 0002_more keeps what only older versions need, so that you can go back to one',
  ])
})

test('archiving is fine while it works, a warning when it fails, and a hint when it is off', () => {
  const earlier = new Date(now.getTime() - 60_000)
  const levels = [
    { isOn: true, archivedAt: now, failedAt: earlier },
    { isOn: true, archivedAt: earlier, failedAt: now },
    { isOn: true, archivedAt: null, failedAt: null },
    { isOn: false, archivedAt: null, failedAt: null },
  ].map(archiving => said('archiving', { archiving })[0]?.split(':')[0])
  expect(levels).toEqual(['ok', 'warning', 'warning', 'hint'])
})

test('the installation key is named for the backup, and is missing if it is not the key of the database', () => {
  expect(said('key', {})[0]).toMatch(
    /^hint: Only the installation’s key 0f3a in \/etc\/midmonth\/installation.key opens/,
  )
  const fault = 'This database needs another key'
  expect(said('key', { installationKey: { name: '', fault } })).toEqual([`missing: ${fault}`])
})

test('a second key is fine, and a warning if it lacks the latest rotation', () => {
  const escrow = keyCopy('7b21')
  expect(said('key', { keyCopies: [keyCopy('0f3a'), escrow] })).toEqual([
    'ok: The installation’s key is 0f3a in /etc/midmonth/installation.key; 1 more can open this database',
  ])
  expect(said('key', { keyCopies: [keyCopy('0f3a'), { ...escrow, isComplete: false }] })[0]).toMatch(
    /^warning: 7b21 cannot open this database since its key was rotated/,
  )
})

test('members who were restored without their keys are missing, with their number and the first ids', () => {
  expect(said('memberKeys', {})).toEqual(['ok: The latest members have their keys'])
  expect(said('memberKeys', { membersWithoutKeys: { count: 3, memberIds: ['mem_1', 'mem_2'] } })[0]).toBe(
    'missing: The backup of the keys is older than the data: 3 members have no keys in member_keys that open (mem_1, mem_2, and 1 more); ' +
      'restore a later backup of the keys, or if there is none, run midmonth backup keys-lost (docs/operations/backups.md)',
  )
})

test('the journal of erasures is named for the backup, and a warning if it was lost or cannot be read', () => {
  const at = (changes: Partial<NonNullable<DatabaseFacts['erasureJournal']>>) =>
    said('erasures', { erasureJournal: { place: '/journal', unrecorded: 0, fault: undefined, ...changes } })[0]
  expect(at({})).toMatch(/^hint: Back up the journal of erasures \(\/journal\) with every backup/)
  expect(at({ unrecorded: 1 })).toMatch(/^warning: The journal of erasures \(\/journal\) lacks an erasure that/)
  expect(at({ unrecorded: 3 })).toMatch(/lacks 3 erasures that the database knows; restore it/)
  expect(at({ fault: 'It is a folder' })).toBe(
    'warning: The journal of erasures (/journal) cannot be read: It is a folder',
  )
  expect(said('erasures', { erasureJournal: undefined })).toEqual([])
})

test('a batch is named when it needs a person or is late', () => {
  const bank = new FileBank()
  const delivered = [checkedFiles({ delivery: async () => bank })]
  const at = (changes: Partial<Batch>) => said('batches', { rails: delivered, batches: [{ ...batch, ...changes }] })
  const closed = { closedAt: now, cutOffAt: now }
  const what = 'warning: bat_1 (2 payments, 123.45 EUR)'
  expect(at({})).toEqual(['ok: No batch waits for a person or is late'])
  expect(at(closed)).toEqual([`${what} waits for approval`])
  expect(at({ ...closed, held: true })).toEqual([`${what} is held`])
  expect(at({ ...closed, valueDate: '2026-11-19' })).toEqual([
    `${what} waits for approval, and its value date 2026-11-19 has passed`,
  ])
  expect(at({ ...closed, status: 'approved' })).toEqual(['ok: No batch waits for a person or is late'])
  expect(at({ ...closed, status: 'approved', valueDate: '2026-11-19' })).toEqual([
    `${what} was not sent, and its value date 2026-11-19 has passed`,
  ])
  const byHand = {
    rails: [checkedFiles({ delivery: null })],
    batches: [{ ...batch, ...closed, status: 'approved' as const }],
  }
  expect(said('batches', byHand)).toEqual([`${what} waits to be exported and carried to the bank`])
  const sent = { ...closed, status: 'sent' as const, sentAt: now }
  expect(at({ ...sent, valueDate: '2026-11-15' })).toEqual(['ok: No batch waits for a person or is late'])
  expect(at({ ...sent, valueDate: '2026-11-14' })).toEqual([
    `${what} was sent on 2026-11-20T10:00:00.000Z, and the bank has not answered for all of it`,
  ])
})

test('a tier that asks for instant payouts is named if its rail cannot make them', () => {
  const partner = { id: 'par_1', name: 'Acme', suspendedAt: null } as DatabaseFacts['partners'][number]
  const at = (canBeInstant: boolean, currency: 'EUR' | 'GBP' = 'EUR') =>
    said('speeds', {
      partners: [partner],
      rails: [checkedFiles({ canBeInstant })],
      instantTiers: [{ partnerId: 'par_1', name: 'Fast', currency }],
    })
  expect(at(false)).toEqual([
    'warning: The tier Fast of Acme (par_1) asks for instant payouts, but the rail euro-files cannot make them and pays at its own speed',
  ])
  expect(at(true)).toEqual(['ok: Every tier that asks for instant payouts has a rail that can make them'])
  expect(said('speeds', {})).toEqual(['ok: No tier asks for instant payouts'])
})

test('a held rail is a warning with the command that releases it', () => {
  const heldRails = [{ rail: 'adyen', heldAt: now, heldBy: 'Ada (ada@host)' }]
  expect(said('batches', { heldRails })).toEqual([
    `warning: The rail adyen has been held since ${now.toISOString()} by Ada (ada@host), so nothing is sent through it`,
  ])
})

test('open exceptions are counted', () => {
  expect(said('exceptions', { openExceptions: 2 })).toEqual([
    'warning: 2 answers of a bank did not fit and need a decision',
  ])
})

test('a partly imported bank file is a warning with its progress', () => {
  const importing = [
    {
      ...{ fileId: 'bf_1', rail: 'sepa', name: 'camt053.xml', status: 'importing' as const },
      ...{ records: 200_000, applied: 12_000, receivedAt: now },
    },
  ]
  expect(said('bank files', { importing })).toEqual([
    'warning: 12000 of 200000 records of the bank file camt053.xml are imported on sepa; unless an import runs, the worker continues it',
  ])
})

test('differences in the statements of a bank are reported for each account', () => {
  const reason = 'Statement 12 of the account …6199 is missing, between those of 2026-11-18 and 2026-11-20'
  expect(
    said('bank accounts', { differences: [{ id: 'pex_1', rail: 'sepa', kind: 'statement_gap', reason }] }),
  ).toEqual([`warning: ${reason}`])
})

test('a rail of an API is missing a secret that cannot be used, and should receive notifications', async () => {
  const settings = toAdyenSettings(
    {
      ...{ name: 'adyen', type: 'adyen', currency: 'GBP', balanceAccountId: 'BA001234' },
      apiKeyFile: '/missing/key',
    },
    'live',
  )
  const polled = await checkRails([adyenToRail(settings)])
  const noKey = expect.stringMatching(/^missing: The rail adyen cannot pay: \/missing\/key/)
  const untried =
    'hint: The rail adyen has not been run against Adyen’s live service by its authors; pay one cent first'
  expect(said('bank API', { rails: [] })).toEqual(['ok: No rail uses an API'])
  expect(said('bank API', { rails: polled })).toEqual([
    noKey,
    'warning: The rail adyen receives no notifications, so a returned payment is noticed hours later',
    untried,
  ])
  const notifications = { hmacKeyFiles: ['/missing/hmac'], basicAuth: null }
  const noHmacKey = expect.stringMatching(/^missing: The rail adyen cannot pay: \/missing\/hmac/)
  const notified = await checkRails([adyenToRail({ ...settings, notifications })])
  expect(said('bank API', { rails: notified })).toEqual([noKey, noHmacKey, untried])
  expect(said('approval', { rails: polled })).toEqual([
    'hint: The rail adyen has no limits for automatic approval, so two people approve every batch',
  ])
  expect(said('rails', { rails: polled })).toEqual(['ok: GBP by adyen (Adyen Transfers, polled)'])
  expect(said('returns', { rails: polled })).toEqual(['ok: Every rail reads which payments came back'])
})

test('a verification of the books is fine for a day, then a hint, and a warning if they did not agree', () => {
  const found = { name: 'member balances', rule: 'Every balance is the sum of its rows', disagreement: null }
  const disagreement = { partnerId: 'par_1', subject: 'mem_1 GBP', expected: '1', found: '2' }
  const ended = (changes: object) => ({
    ...{
      id: 'lv_1',
      requestedBy: 'usr_1',
      requestedAt: now,
      startedAt: now,
      endedAt: new Date('2026-11-19T10:00:00Z'),
    },
    ...{ checksDone: 1, checksTotal: 1, checks: [found], problem: null },
    ...changes,
  })
  const of = (verification: DatabaseFacts['verification']) => said('books', { verification })
  const daily = 'verify the books daily'
  expect(of(undefined)).toEqual([`hint: No verification is recorded; ${daily}`])
  expect(of(ended({}))).toEqual(['ok: The books agreed on 2026-11-19T10:00:00.000Z'])
  expect(of(ended({ endedAt: new Date('2026-11-19T08:59:59Z') }))).toEqual([
    `hint: The books were last verified on 2026-11-19T08:59:59.000Z; ${daily}`,
  ])
  expect(of(ended({ checks: [found, { ...found, disagreement }] }))).toEqual([
    'warning: The books did not agree on 2026-11-19T10:00:00.000Z: Every balance is the sum of its rows',
  ])
  expect(of(ended({ checks: null, problem: 'It failed; see the worker’s log' }))).toEqual([
    'warning: The verification of 2026-11-19T10:00:00.000Z was interrupted: It failed; see the worker’s log',
  ])
})
