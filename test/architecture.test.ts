import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const files = ['src', 'cli']
  .flatMap(folder =>
    readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' }).map(name => `${folder}/${name}`),
  )
  .filter(name => name.endsWith('.ts') && !/\.(test|fixture)\.ts$/.test(name))
const modules = files.map(file => {
  const text = readFileSync(path.join(root, file), 'utf8')
  const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
  const specifiers = [...code.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map(match => match[1] ?? '')
  const imports = specifiers
    .filter(each => each.startsWith('.'))
    .map(each => path.posix.normalize(path.posix.join(path.posix.dirname(file), each)))
  return {
    file,
    text,
    code,
    imports,
    packages: specifiers.filter(each => !each.startsWith('.') && !each.startsWith('node:')),
  }
})

const slices = [
  'bank-accounts',
  'members',
  'member-imports',
  'partners',
  'payouts',
  'pay-cycles',
  'pay-runs',
  'settlements',
  'tiers',
  'withdrawals',
  'float',
  'sandbox',
]
const folderOf = (file: string) => file.split('/').slice(1, -1)[0] ?? ''
const isEdge = (file: string) => file.startsWith('src/http/') || /^src\/.+\/(routes|jobs)\.ts$/.test(file)

/** How far from the vocabulary a module is; imports go down, never up. */
function levelOf(file: string): number {
  if (file.startsWith('cli/')) return 6
  if (file === 'src/main.ts') return 5
  if (['src/app.ts', 'src/worker.ts'].includes(file)) return 4
  if (isEdge(file)) return 3
  if (slices.includes(folderOf(file))) return 2
  if (['ledger', 'events', 'audit-log', 'idempotency', 'embedded', 'tabular'].includes(folderOf(file))) return 1
  return 0
}

test('the check sees the whole program', () => {
  expect(modules.length).toBeGreaterThan(50)
  expect(modules.reduce((count, module) => count + module.imports.length, 0)).toBeGreaterThan(150)
  for (const { imports } of modules)
    for (const each of imports) expect(each.endsWith('.json') || files.includes(each), each).toBe(true)
})

test('imports go from the program to its edges, slices, books and vocabulary, never back', () => {
  const upward = modules.flatMap(({ file, imports }) =>
    imports
      .filter(each => levelOf(each) > levelOf(file))
      // Wire shapes are declared with the slice, in the terms that every list and answer shares.
      .filter(each => !(/\/schema\.ts$/.test(file) && each === 'src/http/list.ts'))
      .map(each => `${file} imports ${each}`),
  )
  expect(upward).toEqual([])
})

test('no module imports itself by a detour', () => {
  const importsOf = new Map(
    modules.map(({ file, imports, text }) => [file, imports.filter(each => hasValueImport(text, each))]),
  )
  const circles: string[] = []
  const visit = (file: string, way: string[]) => {
    if (way.includes(file)) circles.push([...way.slice(way.indexOf(file)), file].join(' > '))
    else for (const each of importsOf.get(file) ?? []) visit(each, [...way, file])
  }
  for (const { file } of modules) visit(file, [])
  expect([...new Set(circles)]).toEqual([])
})

test('another slice is entered by its front door', () => {
  const rooms = new Set([...slices, 'ledger', 'events', 'audit-log', 'idempotency', 'embedded', 'tabular'])
  const intrusions = modules.flatMap(({ file, imports }) =>
    imports
      .filter(each => rooms.has(folderOf(each)) && folderOf(each) !== folderOf(file))
      .filter(each => !isFrontDoor(each) && !['src/app.ts', 'src/worker.ts'].includes(file))
      .map(each => `${file} imports ${each}`),
  )
  expect(intrusions).toEqual([])
})

test('a table is written by one slice', () => {
  const owners: Record<string, string> = {
    installation: 'partners',
    partners: 'partners',
    api_keys: 'partners',
    tiers: 'tiers',
    tier_versions: 'tiers',
    members: 'members',
    member_jobs: 'member-imports',
    member_job_rows: 'member-imports',
    member_job_steps: 'member-imports',
    pay_cycles: 'pay-cycles',
    pay_runs: 'pay-runs',
    pay_run_lines: 'pay-runs',
    settlement_lines: 'settlements',
    withdrawal_intents: 'withdrawals',
    withdrawals: 'withdrawals',
    rail_cursors: 'payouts',
    simulated_bank_payments: 'payouts',
    simulated_bank_reports: 'payouts',
    ledger_transfers: 'ledger',
    ledger_balances: 'ledger',
    ledger_float_totals: 'ledger',
    ledger_float_changes: 'ledger',
    event_feeds: 'events',
    float_limits: 'float',
    float_references: 'float',
    audit_log: 'audit-log',
    idempotency_keys: 'idempotency',
    worker_heartbeats: 'workers',
    events: 'events',
  }
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
  expect(writes.filter(({ file, table }) => folderOf(file) !== owners[table])).toEqual([])
})

test('only edges know HTTP, only the settings read the environment, only the program reads the clock', () => {
  const breaches = modules.flatMap(({ file, code, packages }) => [
    ...(packages.some(name => /fastify/.test(name)) && !isEdge(file) ? [`${file} imports Fastify`] : []),
    ...(/process\.env/.test(code) && !file.startsWith('cli/') && !file.startsWith('src/embedded/')
      ? [`${file} reads the environment`]
      : []),
    ...(/new Date\(\)|Date\.now\(\)/.test(code) && file !== 'src/main.ts' && !file.startsWith('src/embedded/')
      ? [`${file} reads the clock`]
      : []),
    ...(/NODE_ENV|VITEST/.test(code) ? [`${file} knows of tests`] : []),
  ])
  expect(breaches).toEqual([])
})

test('nothing is called by a name that says nothing', () => {
  const vague = /(^|\/)(utils?|common|helpers?|shared|misc|managers?|services?|controllers?|repositor(y|ies))(\.ts|\/)/
  expect(files.filter(file => vague.test(file))).toEqual([])
})

test('money is never a float', () => {
  const suspicious = modules
    .filter(({ file, code }) => file !== 'src/money.ts' && /parseFloat|toFixed\(|Math\.round\([^)]*amount/i.test(code))
    .map(({ file }) => file)
  expect(suspicious).toEqual([])
})

function isFrontDoor(file: string): boolean {
  const [name = ''] = path.posix.basename(file).split('.')
  // The operations, the pure rules, the wire shapes, what an operator looks at; partners have keys, members are changed in bulk too, withdrawals have intents and complete them, pay cycles are closed, the books have a check; files
  // from outside are rows; a rail is opened by the program.
  return (
    name === folderOf(file) ||
    [
      'rules',
      'fields',
      'schema',
      'api-keys',
      'intents',
      'completing',
      'closing',
      'changes',
      'deductions',
      'verify',
      'demo',
      'problem',
      'rows',
      'rail',
      'simulated-bank',
      'inspection',
    ].includes(name)
  )
}

function hasValueImport(text: string, target: string): boolean {
  const name = path.posix.basename(target)
  return [...text.matchAll(/import\s+(type\s)?[^'";]*from\s+'([^']+)'/g)].some(
    match => match[1] === undefined && (match[2] ?? '').endsWith(`/${name}`),
  )
}
