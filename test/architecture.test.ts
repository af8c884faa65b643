import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const files = ['src', 'cli', 'packages']
  .flatMap(folder =>
    readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' }).map(name => `${folder}/${name}`),
  )
  .filter(name => /\.tsx?$/.test(name) && !/\.(test|fixture)\.ts$|\/(node_modules|dist)\//.test(name))
const modules = files.map(file => {
  const text = readFileSync(path.join(root, file), 'utf8')
  const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
  // Value imports, type imports and `import()`.
  const specifiers = specifiersIn(code)
  const pathOf = (specifier: string) => path.posix.normalize(path.posix.join(path.posix.dirname(file), specifier))
  const isPath = (specifier: string) => specifier.startsWith('.')
  const imports = specifiers.filter(isPath).map(pathOf)
  const values = specifiersIn(code.replace(/^import type [^']*'.*$/gm, ''))
    .filter(isPath)
    .map(pathOf)
  const packages = specifiers.filter(each => !isPath(each) && !each.startsWith('node:'))
  return { file, code, imports, values, packages }
})

function specifiersIn(code: string): string[] {
  return [...code.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map(match => match[1] ?? '')
}

/** The folder below src that a file belongs to, which is a slice or a layer; a file directly in src stands for itself. */
const folderOf = (file: string) => {
  const [top = '', ...rest] = file.split('/')
  if (top !== 'src') return top
  return rest.length === 1 ? file : (rest[0] ?? '')
}

/** The room that a file is in: its folder below src, or in payouts the folder itself. */
const roomOf = (file: string) => /^src\/(payouts(?:\/[a-z0-9-]+)+)\//.exec(file)?.[1] ?? folderOf(file)
const isHttpLayer = (room: string) => ['http', 'site'].includes(room)

const books = ['ledger', 'events', 'audit-log', 'idempotency', 'metadata', 'tabular']
const slices = [
  'backups',
  'bank-accounts',
  'closing',
  'data-export',
  'diagnosis',
  'erasure',
  'fees',
  'float',
  'member-imports',
  'members',
  'notices',
  'operators',
  'overview',
  'partners',
  'pay-cycles',
  'pay-runs',
  'payouts',
  'requests',
  'retention',
  'sandbox',
  'settlements',
  'statements',
  'tiers',
  'users',
  'verification',
  'webhooks',
  'withdrawals',
]
/** They register the routes and tasks of all slices. */
const programs = [
  'src/app.ts',
  'src/in-process.ts',
  'src/open-database.ts',
  'src/operations.ts',
  'src/rails.ts',
  'src/worker.ts',
  'src/tasks.ts',
]
const isHttp = (file: string) =>
  /^src\/(http|site)\//.test(file) ||
  /^src\/.+\/(([a-z-]+-)?(routes|operations)|operation|operation-context)\.ts$/.test(file)
const isTasks = (file: string) => /^src\/.+\/tasks\.ts$/.test(file)

/** The layer of a module. Imports go to the same layer or a lower one. */
function levelOf(file: string): number {
  if (file.startsWith('packages/')) return 0
  if (file.startsWith('cli/')) return 6
  if (file === 'src/main.ts') return 5
  if (programs.includes(file)) return 4
  if (isHttp(file) || isTasks(file)) return 3
  if (slices.includes(folderOf(file))) return 2
  if (books.includes(folderOf(file))) return 1
  return 0
}

test('every import leads to a file that the checks see, and every folder is a slice or a layer', () => {
  expect(modules.length).toBeGreaterThan(150)
  expect(modules.reduce((count, module) => count + module.imports.length, 0)).toBeGreaterThan(500)
  for (const { imports } of modules)
    for (const each of imports) expect(/\.(json|css)$/.test(each) || files.includes(each), each).toBe(true)
  const folders = new Set(files.filter(file => file.startsWith('src/')).map(folderOf))
  const known = [
    ...slices,
    ...books,
    'batch',
    'contract',
    'database',
    'http',
    'kernel',
    'metrics',
    'sealing',
    'site',
    'tracing',
    'worker',
  ]
  expect([...folders].filter(folder => !folder.endsWith('.ts') && !known.includes(folder))).toEqual([])
})

test('imports go from the program to HTTP and tasks, slices, books and vocabulary, never back', () => {
  const upward = modules.flatMap(({ file, imports }) =>
    imports.filter(each => levelOf(each) > levelOf(file)).map(each => `${file} imports ${each}`),
  )
  expect(upward).toEqual([])
})

test('the contract imports neither Fastify nor node:http', () => {
  const ofContract = modules.filter(({ file }) => file.startsWith('src/contract/'))
  expect(ofContract.length).toBeGreaterThan(5)
  const knowsHttp = /'(fastify|@fastify\/.*|node:https?)'/
  expect(ofContract.filter(({ code }) => knowsHttp.test(code)).map(({ file }) => file)).toEqual([])
})

test('packages import nothing of the program', () => {
  const found = modules
    .filter(({ file }) => file.startsWith('packages/'))
    .flatMap(({ file, imports }) =>
      imports.filter(each => !each.startsWith('packages/')).map(each => `${file}: ${each}`),
    )
  expect(found).toEqual([])
})

/** Every cycle of a graph, as a path that ends where it begins. */
function cyclesOf(edges: Map<string, Set<string>>): string[] {
  const cycles: string[] = []
  const done = new Set<string>()
  const visit = (node: string, way: string[]) => {
    if (way.includes(node)) cycles.push([...way.slice(way.indexOf(node)), node].join(' > '))
    else if (!done.has(node)) for (const next of edges.get(node) ?? []) visit(next, [...way, node])
    done.add(node)
  }
  for (const node of edges.keys()) visit(node, [])
  return cycles
}

test('cycles are found in a graph that has one', () => {
  const graph = { a: ['b'], b: ['c', 'd'], c: [], d: ['a'] }
  expect(cyclesOf(new Map(Object.entries(graph).map(([node, next]) => [node, new Set(next)])))).toEqual([
    'a > b > d > a',
  ])
})

test('neither files nor folders import each other in a circle, types included', () => {
  const ofFiles = new Map(modules.map(({ file, imports }) => [file, new Set(imports)]))
  expect(cyclesOf(ofFiles)).toEqual([])

  const ofFolders = new Map<string, Set<string>>()
  for (const { file, imports } of modules) {
    for (const each of imports) {
      const [from, to] = [folderOf(file), folderOf(each)]
      if (from !== to) ofFolders.set(from, (ofFolders.get(from) ?? new Set()).add(to))
    }
  }
  expect(cyclesOf(ofFolders)).toEqual([])
})

test('only app.ts and worker.ts import the sandbox, and only on demand', () => {
  const outside = modules.filter(({ file }) => file.startsWith('src/') && !file.startsWith('src/sandbox/'))
  const statically = outside.filter(({ code }) => /from\s+'[^']*\/sandbox\/[^']*'/.test(code)).map(({ file }) => file)
  expect(statically).toEqual([])
  const onDemand = outside.filter(({ code }) => /import\('[^']*\/sandbox\/[^']*'\)/.test(code)).map(({ file }) => file)
  expect(onDemand.sort()).toEqual(['src/app.ts', 'src/worker.ts'])
})

test('a file in a subfolder of a room is private to it, and operations and tasks are registered by the program alone', () => {
  const intrusions = modules.flatMap(({ file, imports }) =>
    imports
      .filter(each => each.startsWith('src/') && roomOf(each) !== roomOf(file) && !isHttpLayer(roomOf(each)))
      .filter(each => {
        if (isTasks(each)) return !programs.includes(file)
        // The commands of operators call operations, each those that it needs.
        if (isHttp(each)) return ![...programs, 'src/main.ts'].includes(file) && !file.startsWith('cli/')
        const inside = each.slice(`src/${roomOf(each)}/`.length)
        return inside.includes('/')
      })
      .map(each => `${file} imports ${each}`),
  )
  expect(intrusions).toEqual([])
})

test('only the registry imports a channel, but for the simulated bank and files that are carried by hand', () => {
  const others = modules.flatMap(({ file, imports }) =>
    imports
      .filter(each => /^src\/payouts\/channels\/[a-z]+\//.test(each) && roomOf(each) !== roomOf(file))
      .filter(() => file !== 'src/payouts/registry.ts')
      // The sandbox plays the simulated bank.
      .filter(each => !(folderOf(file) === 'sandbox' && each.startsWith('src/payouts/channels/simulated/')))
      // Operators carry files to the bank by hand, and the demo sends its own.
      .filter(each => !/channels\/files\/(export|channel)\.ts$/.test(each))
      .map(each => `${file} imports ${each}`),
  )
  expect(others).toEqual([])
})

/** The slice that owns each table: the only one that writes it. */
const owners: Record<string, string> = {
  installation: 'partners',
  partners: 'partners',
  partner_logos: 'partners',
  api_keys: 'partners',
  operator_keys: 'partners',
  member_sessions: 'partners',
  tiers: 'tiers',
  tier_versions: 'tiers',
  members: 'members',
  member_keys: 'members',
  member_former_names: 'members',
  member_fingerprint_key: 'sealing',
  member_erasures: 'erasure',
  member_counts: 'members',
  member_count_changes: 'members',
  metadata: 'metadata',
  member_imports: 'member-imports',
  member_import_keys: 'member-imports',
  member_import_progress: 'member-imports',
  member_import_rows: 'member-imports',
  member_import_steps: 'member-imports',
  pay_cycles: 'pay-cycles',
  pay_runs: 'pay-runs',
  pay_run_lines: 'pay-runs',
  settlement_dues: 'settlements',
  settlement_lines: 'settlements',
  settlement_fees: 'fees',
  fee_collections: 'fees',
  invoices: 'fees',
  invoice_lines: 'fees',
  withdrawal_intents: 'withdrawals',
  withdrawal_intent_expiry: 'withdrawals',
  withdrawals: 'withdrawals',
  unpaid_withdrawals: 'withdrawals',
  withdrawal_recoveries: 'withdrawals',
  sandbox_clocks: 'partners',
  sandbox_clock_moves: 'sandbox',
  rail_cursors: 'payouts',
  payout_references: 'payouts',
  payouts: 'payouts',
  payout_batches: 'payouts',
  payout_batch_approvals: 'payouts',
  payout_batch_copies: 'payouts',
  payout_batch_endings: 'payouts',
  payout_rail_holds: 'payouts',
  restores: 'payouts',
  payout_exceptions: 'payouts',
  payout_proposals: 'payouts',
  payout_rules: 'payouts',
  bank_archive_keys: 'payouts',
  bank_files: 'payouts',
  bank_records: 'payouts',
  bank_reconciliations: 'payouts',
  bank_statements: 'payouts',
  staged_bank_records: 'payouts',
  simulated_bank_payments: 'payouts',
  simulated_bank_reports: 'payouts',
  simulated_bank_instructions: 'payouts',
  simulated_bank_faults: 'payouts',
  detached_member_sums: 'verification',
  detached_months: 'verification',
  detached_payment_sums: 'verification',
  ledger_verifications: 'verification',
  ledger_member_seals: 'verification',
  ledger_seal_sums: 'verification',
  ledger_seals: 'verification',
  ledger_transfers: 'ledger',
  ledger_balances: 'ledger',
  ledger_deductions: 'ledger',
  ledger_cycle_totals: 'ledger',
  ledger_cycle_changes: 'ledger',
  ledger_float_totals: 'ledger',
  ledger_float_changes: 'ledger',
  event_feeds: 'events',
  float_limits: 'float',
  float_costs: 'float',
  float_references: 'float',
  audit_log: 'audit-log',
  disclosures: 'audit-log',
  idempotency_keys: 'idempotency',
  request_log: 'requests',
  removals: 'retention',
  worker_heartbeats: 'worker',
  operator_notices: 'notices',
  users: 'users',
  user_roles: 'users',
  user_sessions: 'users',
  user_links: 'users',
  user_invitations: 'users',
  user_identities: 'users',
  user_recovery_codes: 'users',
  user_browsers: 'users',
  sign_in_failures: 'users',
  installation_keys: 'sealing',
  installation_key_uses: 'sealing',
  installation_audit_log: 'audit-log',
  withdrawal_totals: 'overview',
  withdrawal_total_feeds: 'overview',
  webhook_endpoints: 'webhooks',
  webhook_secrets: 'webhooks',
  webhook_feeds: 'webhooks',
  webhook_deliveries: 'webhooks',
  webhook_attempts: 'webhooks',
  events: 'events',
  migrations: 'database',
  migration_steps: 'database',
  database_places: 'database',
  // Written by migrations only.
  state_transitions: 'database',
}

test('every table has an owner', () => {
  const tables = readFileSync(path.join(root, 'src/database/tables.ts'), 'utf8').matchAll(/^ {2}([a-z]\w*): \{$/gm)
  const names = [...tables].map(match => (match[1] ?? '').replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`))
  expect(names.filter(name => !(name in owners))).toEqual([])
  expect(Object.keys(owners).filter(name => !names.includes(name))).toEqual([])
})

/** Writes to another slice's tables, each with its reason. */
const tableWrites: Record<string, { [table: string]: string }> = {
  database: { idempotency_keys: 'deletes no row, which takes the lock of the partner’s shard' },
}

test('inserts, updates and deletes name only tables that the slice owns, or that the list says', () => {
  const writes = modules.flatMap(({ file, code }) =>
    [
      ...code.matchAll(
        /(?:insert into|update|delete from)\s+([a-z]+(?:_[a-z]+)*)\b|(?:insertInto|updateTable|deleteFrom)\('([A-Za-z]+)'\)/g,
      ),
    ]
      .map(match => (match[1] ?? match[2] ?? '').replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`))
      .filter(table => table in owners)
      .map(table => ({ file, table })),
  )
  expect(writes.length).toBeGreaterThan(15)
  const foreign = writes.filter(({ file, table }) => folderOf(file) !== owners[table])
  const listed = Object.entries(tableWrites).flatMap(([slice, tables]) =>
    Object.keys(tables).map(table => `${slice} writes ${table}`),
  )
  expect(foreign.map(({ file, table }) => `${folderOf(file)} writes ${table}`)).toEqual(listed)
})

/** Reads of another slice's tables, each with the reason why it does not go through that slice's module. */
const tableReads: Record<string, { [table: string]: string }> = {
  closing: { ledger_balances: 'finds the members with unused pay of an ended cycle, page by page' },
  database: {
    detached_months: 'spreads no tables while months are missing',
    idempotency_keys: 'deletes no row, which takes the lock of the partner’s shard',
    pay_cycles: 'joins new rows with a row of the partner, so that they are inserted on its node',
  },
  erasure: {
    ledger_balances:
      'decides under the member’s lock whether anything about the member is unfinished, in one statement',
    ledger_deductions:
      'decides under the member’s lock whether anything about the member is unfinished, in one statement',
    members: 'finds the members of the journal that a restored database still has',
    pay_cycles: 'decides under the member’s lock whether anything about the member is unfinished, in one statement',
    pay_run_lines: 'decides under the member’s lock whether anything about the member is unfinished, in one statement',
    pay_runs: 'decides under the member’s lock whether anything about the member is unfinished, in one statement',
    payout_exceptions:
      'decides under the member’s lock whether anything about the member is unfinished, in one statement',
    payouts: 'decides under the member’s lock whether anything about the member is unfinished, in one statement',
    withdrawal_intents:
      'decides under the member’s lock whether anything about the member is unfinished, in one statement',
    withdrawals: 'decides under the member’s lock whether anything about the member is unfinished, in one statement',
  },
  events: {
    metadata: 'adds the metadata of their objects to the events that it numbers, in one statement',
    partners: 'lists the feeds that have events without a position',
  },
  fees: {
    float_references: 'sums what the operator has taken out',
    partners: 'locks the partner whose invoices change',
    tiers: 'knows a partner’s currencies by the tiers',
    tier_versions: 'knows by the tiers whose fees an employer pays',
    withdrawal_intents: 'sums the fees of a month by tier in one statement',
    ledger_balances: 'decides for all members of a settlement in one statement what it covers of their fees',
    ledger_transfers: 'decides for all members of a settlement in one statement what it covers of their fees',
    settlement_dues: 'collects fees as far as the money of their settlement has arrived',
    settlement_lines: 'decides for all members of a settlement in one statement what it covers of their fees',
    withdrawals: 'decides for all members of a settlement in one statement what it covers of their fees',
  },
  ledger: {
    detached_member_sums: 'begins statements after the detached months',
    detached_months: 'says which months are missing',
    partners: 'locks the partner, so that one process at a time folds its changes',
  },
  float: {
    partners: 'locks the partner whose limits change',
    tiers: 'knows a partner’s currencies by the tiers',
  },
  http: { idempotency_keys: 'looks a key up for the caller' },
  'member-imports': {
    members: 'compares a whole list with the members in one statement',
    member_keys: 'opens the members that the results of a batch of actions show',
    partners: 'joins the share of members that a list may offboard',
  },
  members: {
    member_erasures: 'destroys the keys again that a backup has restored, in one statement',
    member_imports: 'keeps former e-mails and worker ids as long as rows of imports may have them',
    ledger_balances: 'a member may change currency or leave only without a balance',
    pay_cycles: 'only pay of the open cycle keeps a member in its currency',
    pay_run_lines: 'a member with pay in its grace period keeps the currency',
    pay_runs: 'a member with pay in its grace period keeps the currency',
    partners: 'joins the partner’s country, which phone numbers are read by',
    tiers: 'a member’s currency is that of the tier',
    withdrawals: 'a member with a payout in flight keeps the currency',
  },
  'pay-cycles': {
    ledger_deductions: 'lists deductions with the members whom they concern',
    members: 'names the members of the deductions',
    member_keys: 'opens the profiles of these members',
    partners: 'finds the cycles that are over in their partners’ time zones',
  },
  overview: {
    events: 'adds up the feed in one statement',
    event_feeds: 'finds the feeds that are numbered further than they are added up',
    partners: 'adds up withdrawals by the days of the partner’s time zone',
    withdrawals: 'adds up the withdrawals that events are about',
  },
  partners: { members: 'checks in one statement whether the member of a session is still there' },
  payouts: {
    member_keys: 'opens what banks say about payments of several members',
    ledger_transfers: 'asks in one statement which recent transfers of an account the bank has booked',
    partners:
      'fixes the remittance text of payments when they join their batch, names the partners of a batch, and goes through recent transfers by partner',
    withdrawal_intents: 'writes the accounts of a batch of 100,000 payments page by page',
    withdrawals:
      'writes the accounts of a batch of 100,000 payments page by page, finds the payment of a withdrawal by its id, and knows whether it is older than a restore',
  },
  'pay-runs': {
    ledger_balances: 'decides under the members’ locks how pay is split between available and owed',
    pay_cycles: 'finds due pay runs whose cycle is open',
  },
  requests: { partners: 'deletes old requests partner by partner, along the index' },
  sandbox: {
    members: 'locks what a reset deletes, in the lock order of the program',
    member_imports: 'finds the imports to reject before one is taken through a transition',
    pay_cycles: 'locks what a reset deletes, in the lock order of the program',
    pay_runs: 'locks what a reset deletes, in the lock order of the program',
    sandbox_clocks: 'locks the clock that is about to move',
    withdrawal_intents: 'locks what a reset deletes, in the lock order of the program',
    withdrawals: 'locks what a reset deletes, in the lock order of the program',
  },
  sealing: {
    partners: 'tells a new database from one that was restored without its keys',
    users: 'tells a new database from one that was restored without its keys',
  },
  settlements: {
    partners: 'reads the shortfall policy',
    pay_cycles: 'finds the cycle that a transfer names, with what is due for it, in one statement',
  },
  worker: { sandbox_clocks: 'queues work by real time, which a partner’s clock may be ahead of' },
  statements: {
    ledger_balances: 'a statement is computed from the books in one statement',
    ledger_transfers: 'a statement is computed from the books in one statement',
    pay_cycles: 'names the days of the cycles whose changes it adds up',
  },
  webhooks: {
    events: 'fans events out, and makes the bodies of deliveries from them, in one statement',
    event_feeds: 'finds the feeds that are numbered further than they are fanned out',
    sandbox_clocks: 'compares due times of many partners with their clocks in one statement',
  },
  withdrawals: {
    float_limits: 'loads everything that a batch decides by in one statement',
    ledger_balances: 'loads everything that a batch decides by in one statement',
    ledger_transfers:
      'shows a withdrawal with the times at which it was booked, by a statement for a lane of one partner',
    metadata: 'shows a withdrawal with the metadata of its intent, by a statement for a lane of one partner',
    member_keys: 'opens the accounts of intents, by statements for a lane of one partner',
    members: 'locks an intent and its member together; loads what a batch decides by',
    partners: 'loads everything that a batch decides by in one statement',
    pay_cycles: 'loads everything that a batch decides by in one statement',
    payouts: 'shows a withdrawal with its reference; claims those of one rail',
    tier_versions: 'loads everything that a batch decides by in one statement',
    tiers: 'loads everything that a batch decides by in one statement',
  },
}

test('a query reads a table of another slice only where the list says so, but for verification', () => {
  const found = new Set(
    modules
      .filter(({ file }) => file.startsWith('src/') && folderOf(file) !== 'verification')
      .flatMap(({ file, code }) =>
        [...code.matchAll(/(?:\b(?:from|join)\s+([a-z]+(?:_[a-z]+)*)\b|(?:selectFrom|[jJ]oin)\(\s*'([A-Za-z]+))/g)]
          .map(match => (match[1] ?? match[2] ?? '').replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`))
          .filter(table => table in owners && owners[table] !== folderOf(file))
          .map(table => `${folderOf(file)} reads ${table}`),
      ),
  )
  const listed = Object.entries(tableReads).flatMap(([slice, reads]) =>
    Object.keys(reads).map(table => `${slice} reads ${table}`),
  )
  expect([...found].sort()).toEqual(listed.sort())
})

test('only routes, operations and http/ import Fastify, src reads no process.env, and only clock.ts reads it', () => {
  const breaches = modules.flatMap(({ file, code, packages }) => [
    ...(packages.some(name => /fastify/.test(name)) && !isHttp(file) ? [`${file} imports Fastify`] : []),
    ...(/process\.env/.test(code) && !file.startsWith('cli/') && !file.startsWith('packages/')
      ? [`${file} reads the environment`]
      : []),
    ...(/new Date\(\)|Date\.now\(\)/.test(code) && file !== 'src/clock.ts' && !file.startsWith('packages/')
      ? [`${file} reads the clock`]
      : []),
    ...(/NODE_ENV|VITEST/.test(code) ? [`${file} knows of tests`] : []),
  ])
  expect(breaches).toEqual([])
})

test('the commands that call the API load none of the program but what has no dependencies or is loaded on demand', () => {
  const found = modules
    .filter(({ file }) => file.startsWith('cli/client/') || /^cli\/(contract|program)\.ts$/.test(file))
    .flatMap(({ imports }) => imports)
    .filter(each => each.startsWith('src/'))
  const allowed = ['openapi', 'samples', 'sdk-names'].map(name => `src/site/docs/${name}.ts`)
  expect([...new Set(found)].sort()).toEqual(
    [
      ...allowed,
      'src/contract/media-types.ts',
      'src/contract/shared-parts.ts',
      // Read by the command that writes results beside the rows of a file.
      'src/tabular/tabular.ts',
      'src/kernel/text.ts',
    ].sort(),
  )
})

/** Commands of operators that do more than call operations, each with the reason. */
const specialCommands: Record<string, string> = {
  'cli/start.ts': 'starts the service',
  'cli/banner.ts': 'shows where the started service is reached',
  'cli/console-set-up.ts': 'makes the link by which the first operator signs in',
  'cli/sandbox-key.ts': 'makes the key of the demo, which a sandbox shows when it starts',
  'cli/backup.ts': 'copies the files of the embedded server',
  'cli/drill-restore.ts': 'restores the files of the embedded server',
  'cli/restore.ts': 'restores the files of the embedded server, on which no operation can run',
  'cli/plan-restore.ts': 'plans these restores and that of a rehearsal',
  'cli/doctor.ts': 'says what is wrong with a database on which operations cannot run',
  'cli/bundle.ts': 'describes an installation on which operations cannot run',
  'cli/status.ts': 'must neither migrate nor need the installation’s key',
  'cli/upgrade.ts': 'migrates a copy, on which operations do not run',
  'cli/distribute.ts': 'changes where tables are, while nothing runs',
  'cli/move-partner.ts': 'changes where rows are, as the owner of the tables',
  'cli/ledger.ts': 'verifies the books without a worker',
  'cli/payout-archive.ts': 'opens a file on this machine with a key that no operation shows',
  'cli/payout-export.ts': 'writes a file, and records it as sent, in steps that survive a kill',
  'cli/operator.ts': 'makes the first operator',
  'cli/operator-key.ts': 'makes the keys by which operations are called',
  'cli/operator-client.ts': 'calls operations in this process',
  'cli/with-database.ts': 'opens the database',
  'cli/installation-key.ts': 'works on keys that no operation can see',
  'cli/actor.ts': 'records the changes of commands that are not clients',
}

test('the commands of operators load only settings, operations and words, but for those listed with a reason', () => {
  const allowed = [
    /^src\/(clock|config|main|open-database|rails)\.ts$/,
    /^src\/(kernel|tabular)\//,
    /^src\/.+-operations\.ts$/,
    // The values that options accept.
    /^src\/(audit-log\/actions|partners\/api-keys|partners\/settings|payouts\/books\/batch-lifecycle|tiers\/terms)\.ts$/,
    // Words for what operations respond.
    /^src\/(diagnosis\/progress|partners\/stops)\.ts$/,
  ]
  const loaded = modules
    .filter(({ file }) => /^cli\/[^/]+$/.test(file) && file !== 'cli/contract.ts')
    .flatMap(({ file, values }) => values.map(each => ({ file, each })))
    .filter(({ each }) => each.startsWith('src/') && !allowed.some(pattern => pattern.test(each)))
  const others = loaded.filter(({ file }) => !(file in specialCommands))
  expect(others.map(({ file, each }) => `${file} imports ${each}`)).toEqual([])
  expect(Object.keys(specialCommands).filter(each => !loaded.some(({ file }) => file === each))).toEqual([])
})

test('only webhooks, the channels and deliveries of payouts, and OpenID Connect import undici, ssh2 or openid-client', () => {
  const clients = modules
    .filter(({ file }) => file.startsWith('src/'))
    .flatMap(({ file, packages }) =>
      packages.filter(name => ['undici', 'ssh2', 'openid-client'].includes(name)).map(() => file),
    )
  const allowed = /^src\/(webhooks|payouts\/(channels|delivery))\/|^src\/users\/oidc\.ts$/
  expect(clients.filter(file => !allowed.test(file))).toEqual([])
  expect(clients.length).toBeGreaterThan(1)
})

test('no file or folder is called utils, common, helpers, shared, misc, managers, services, controllers or repositories', () => {
  const vague = /(^|\/)(utils?|common|helpers?|shared|misc|managers?|services?|controllers?|repositor(y|ies))(\.ts|\/)/
  expect(files.filter(file => vague.test(file))).toEqual([])
})

test('only kernel/money.ts uses parseFloat, toFixed or Math.round of an amount', () => {
  const suspicious = modules
    .filter(
      ({ file, code }) => file !== 'src/kernel/money.ts' && /parseFloat|toFixed\(|Math\.round\([^)]*amount/i.test(code),
    )
    .map(({ file }) => file)
  expect(suspicious).toEqual([])
})
