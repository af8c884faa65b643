import { cpus, release, totalmem } from 'node:os'
import type { BankFileFigures } from './measurements/bank-files.ts'
import { closingTable } from './measurements/closing.ts'
import { consoleTable } from './measurements/console.ts'
import { type Grown, nameOf, type Size } from './measurements/growth.ts'
import type { Import } from './measurements/import.ts'
import { median } from './measurements/median.ts'
import type { Overload } from './measurements/overload.ts'
import type { Point } from './measurements/pgbench.ts'
import type { Profile } from './measurements/profile.ts'
import type { LogCost } from './measurements/request-log.ts'
import type { Cell, Results } from './measurements/results.ts'
import type { Starts } from './measurements/start.ts'
import { webhooksTable } from './measurements/webhooks.ts'

/** Formats all results as Markdown, for docs/internals/performance.md. */
export function reportOf({
  machine,
  cells,
  points,
  starts,
  overload,
  logCosts,
  profiles,
  imports,
  closings,
  webhooks,
  bankFiles,
  console: consoleFigures,
  grown,
  invalid,
}: Results): string {
  const parts = [
    machine,
    ...(invalid.length === 0 ? [] : [`**Invalid:** ${invalid.join('; ')}.`]),
    ...(cells.length === 0 ? [] : [speedTable(cells, points), costTable(cells)]),
    ...Object.entries(points).map(([statement, found]) => pgbenchTable(statement, found)),
    ...(starts === undefined ? [] : [startLine(starts)]),
    ...(overload === undefined ? [] : [overloadTable(overload)]),
    ...(logCosts.length === 0 ? [] : [logCostTable(logCosts)]),
    ...(profiles.length === 0 ? [] : [profileTable(profiles)]),
    ...(imports.length === 0 ? [] : [importTable(imports)]),
    ...(closings.length === 0 ? [] : [closingTable(closings)]),
    ...(webhooks === undefined ? [] : [webhooksTable(webhooks)]),
    ...(bankFiles.length === 0 ? [] : [bankFilesTable(bankFiles)]),
    ...(consoleFigures.length === 0 ? [] : [consoleTable(consoleFigures)]),
    ...(grown.length === 0 ? [] : [growthTable(grown)]),
  ]
  return parts.join('\n\n')
}

/** Describes the machine and the versions of the software. */
export function machineOf({ postgresVersion, now }: { postgresVersion: string; now: Date }): string {
  const [first] = cpus()
  const gigabytes = Math.round(totalmem() / 2 ** 30)
  return (
    `Measured on ${now.toISOString().slice(0, 10)}: ${cpus().length} cores of ${first?.model.trim()}, ${gigabytes} GB, ` +
    `Linux ${release()}, Node ${process.versions.node}, PostgreSQL ${postgresVersion}; load generator, service and ` +
    'PostgreSQL share the cores.'
  )
}

/** The point of pgbench with the most statements a second, from the medians of the rounds. */
function bestPoint(rounds: Point[][] | undefined): { clients: number; perSecond: number } | undefined {
  return medianPoints(rounds ?? []).sort((a, b) => b.perSecond - a.perSecond)[0]
}

function medianPoints(rounds: Point[][]) {
  const [first = []] = rounds
  return first.map(({ clients }, index) => {
    const of = (figure: keyof Point) => median(rounds.flatMap(points => points[index]?.[figure] ?? []))
    return { clients, perSecond: of('perSecond'), averageMs: of('averageMs'), postgresCpuMs: of('postgresCpuMs') }
  })
}

type Row = { workload: string; connections: number; product: Cell[]; typical: Cell[] }

function rowsOf(cells: Cell[]): Row[] {
  const grouped = Map.groupBy(cells, ({ workload, connections }) => `${workload} ${connections}`)
  return [...grouped.values()].flatMap(group => {
    const [first] = group
    if (first === undefined) return []
    const of = (side: string) => group.filter(cell => cell.side === side)
    return [
      { workload: first.workload, connections: first.connections, product: of('product'), typical: of('typical') },
    ]
  })
}

function speedTable(cells: Cell[], points: Results['points']): string {
  return table(
    ['Workload', 'Connections', '× typical', '× pgbench', 'req/s', 'p50 ms', 'p99 ms', 'errors'].concat([
      'typical req/s',
      'p50 ms',
      'p99 ms',
      'errors',
    ]),
    rowsOf(cells).map(({ workload, connections, product, typical }) => {
      const best = workload === 'intent' || workload === 'intent-key' ? bestPoint(points[workload]) : undefined
      return [
        workload,
        String(connections),
        // One ratio per round, since both sides of a round were measured in the same minute.
        figure(median(product.map((cell, round) => cell.perSecond / (typical[round]?.perSecond ?? Number.NaN))), 2),
        best === undefined ? '' : figure(of(product, 'perSecond') / best.perSecond, 2),
        ...speed(product),
        ...speed(typical),
      ]
    }),
  )
}

function speed(cells: Cell[]): string[] {
  const errors = cells.reduce((sum, { refused, broken }) => sum + refused + broken, 0)
  return [
    figure(of(cells, 'perSecond'), 0),
    figure(of(cells, 'p50Ms'), 2),
    figure(of(cells, 'p99Ms'), 2),
    errors === 0 ? '0' : `**${errors}**`,
  ]
}

function costTable(cells: Cell[]): string {
  return table(
    ['CPU ms per request', 'Connections', 'load generator', 'product', 'PostgreSQL', 'RSS MB'].concat([
      'load generator',
      'typical',
      'PostgreSQL',
      'RSS MB',
    ]),
    rowsOf(cells).map(({ workload, connections, product, typical }) => [
      ...[workload, String(connections)],
      ...[...cost(product), ...cost(typical)],
    ]),
  )
}

function cost(cells: Cell[]): string[] {
  return [
    figure(of(cells, 'loadCpuMs'), 3),
    figure(of(cells, 'serviceCpuMs'), 3),
    figure(of(cells, 'postgresCpuMs'), 3),
    figure(of(cells, 'rssMb'), 0),
  ]
}

function pgbenchTable(statement: string, rounds: Point[][]): string {
  const best = bestPoint(rounds)
  return table(
    [`pgbench, ${statement}: clients`, 'statements/s', 'average ms', 'PostgreSQL CPU ms'],
    medianPoints(rounds).map(({ clients, perSecond, averageMs, postgresCpuMs }) => {
      const rate = figure(perSecond, 0)
      return [
        String(clients),
        clients === best?.clients ? `**${rate}**` : rate,
        ...[figure(averageMs, 2), figure(postgresCpuMs, 3)],
      ]
    }),
  )
}

function startLine({ readyMs, idleRssMb }: Starts): string {
  return `From start to ready: ${figure(readyMs, 0)} ms (median of five); idle, the process holds ${figure(idleRssMb, 0)} MB.`
}

function overloadTable({ floods }: Overload): string {
  const share = (count: number, requests: number) => `${figure((100 * count) / requests, 1)} %`
  return table(
    [
      'Flood',
      'connections',
      'capacity/s',
      'goodput × capacity',
      '2xx',
      '503',
      '429',
      'other',
      'broken',
      'p99 ms',
    ].concat([
      'CPU ms per response',
      'RSS MB',
      'polite partner: p99 ms before',
      'p99 ms',
      '×',
      'new connection ms',
      'refused',
    ]),
    floods.map(({ kind, connections, capacity, goodput, statuses, requests, polite, ...flood }) => [
      ...[kind, String(connections), figure(capacity, 0), figure(goodput, 2)],
      ...[statuses.ok, statuses.busy, statuses.tooMany, statuses.other].map(count => share(count, requests)),
      ...[String(flood.broken), figure(flood.p99Ms, 0), figure(flood.serviceCpuMs, 3), figure(flood.rssMb, 0)],
      ...[figure(polite.beforeP99Ms, 1), figure(polite.p99Ms, 1), figure(polite.p99Ms / polite.beforeP99Ms, 1)],
      figure(polite.connectedMs, 0),
      `${polite.refused} of ${polite.requests}`,
    ]),
  )
}

function logCostTable(costs: LogCost[]): string {
  return [
    '| With the request log, over without it | × requests a second | × CPU a request | × p99 |',
    '|---|---|---|---|',
    ...costs.map(
      ({ workload, perSecond, cpu, p99 }) =>
        `| ${workload} | ${perSecond.toFixed(3)} | ${cpu.toFixed(3)} | ${p99.toFixed(2)} |`,
    ),
  ].join('\n')
}

function importTable(imports: Import[]): string {
  const rows = imports[0]?.rows.toLocaleString('en')
  return table(
    [`Import of ${rows} rows`, '× \\copy', 's', 'upload and plan s', 'apply s', '\\copy s', 'RSS MB more'].concat([
      'p99 of others ×',
      'p99 ms',
      'p99 without ms',
      'p50 ms',
      'p50 without ms',
      'max ms',
      'CPU µs a row: product',
      'PostgreSQL',
    ]),
    Object.entries({ first: 'into an empty partner', again: 'again, 1 % changed' }).map(([kind, name]) => {
      const of = (figureOf: (each: Import) => number) =>
        median(imports.filter(each => each.kind === kind).map(figureOf))
      const seconds = (ms: (each: Import) => number) => figure(of(ms) / 1_000, 1)
      return [
        name,
        figure(
          of(({ planMs, applyMs, copyMs }) => (planMs + applyMs) / copyMs),
          1,
        ),
        ...[seconds(({ planMs, applyMs }) => planMs + applyMs), seconds(({ planMs }) => planMs)],
        ...[seconds(({ applyMs }) => applyMs), seconds(({ copyMs }) => copyMs)],
        figure(
          of(({ grownMb }) => grownMb),
          0,
        ),
        figure(
          of(({ others }) => others.during.p99Ms / others.before.p99Ms),
          1,
        ),
        ...[
          ({ others }: Import) => others.during.p99Ms,
          ({ others }: Import) => others.before.p99Ms,
          ({ others }: Import) => others.during.p50Ms,
          ({ others }: Import) => others.before.p50Ms,
        ].map(ms => figure(of(ms), 1)),
        figure(
          of(({ others }) => others.during.maxMs),
          0,
        ),
        ...(['service', 'postgres'] as const).map(side =>
          figure(
            of(({ cpuMs, rows }) => (cpuMs[side] * 1_000) / rows),
            1,
          ),
        ),
      ]
    }),
  )
}

function bankFilesTable(files: BankFileFigures[]): string {
  const payments = files[0]?.payments.toLocaleString('en')
  return table(
    [
      `Bank file of ${payments} payments`,
      '× \\copy',
      's',
      'CPU s',
      '\\copy s',
      'per s',
      'payout ms max',
      'RSS MB more',
      'MB',
    ],
    [...new Set(files.map(({ step }) => step))].map(step => {
      const of = (figureOf: (each: BankFileFigures) => number, decimals: number) =>
        figure(median(files.filter(each => each.step === step).map(figureOf)), decimals)
      return [
        step,
        of(({ ms, copyMs }) => ms / copyMs, 1),
        ...[of(({ ms }) => ms / 1_000, 2), of(({ cpuMs }) => cpuMs / 1_000, 2)],
        of(({ copyMs }) => copyMs / 1_000, 2),
        of(({ ms, payments }) => (payments * 1_000) / ms, 0),
        of(({ payoutMsMax }) => payoutMsMax ?? Number.NaN, 0),
        ...[of(({ grownMb }) => grownMb, 0), of(({ fileMb }) => fileMb, 0)],
      ]
    }),
  )
}

function growthTable(grown: Grown[]): string {
  const sizes = [...new Map(grown.map(({ size }) => [nameOf(size), size])).values()]
  const smallest = sizes.reduce((least, size) => (size.members < least.members ? size : least))
  const rates = (wanted: Size, workload: string) =>
    grown
      .filter(({ size, workload: name }) => nameOf(size) === nameOf(wanted) && name === workload)
      .sort((a, b) => a.round - b.round)
      .map(({ figures }) => figures.perSecond)
  return table(
    ['Already there', 'intents/s', '× slower', 'completions/s', '× slower'],
    sizes.map(size => [
      nameOf(size),
      ...['intent', 'complete'].flatMap(workload => {
        const first = rates(smallest, workload)
        const own = rates(size, workload)
        // One ratio per round here too.
        const slower = own.map((rate, round) => (first[round] ?? Number.NaN) / rate)
        return [figure(median(own), 0), figure(median(slower), 2)]
      }),
    ]),
  )
}

function of(cells: Cell[], figureName: keyof Cell): number {
  return median(cells.map(cell => Number(cell[figureName])))
}

function figure(value: number, decimals: number): string {
  return Number.isFinite(value) ? value.toFixed(decimals) : 'unknown'
}

function table(head: string[], rows: string[][]): string {
  const line = (fields: string[]) => `| ${fields.join(' | ')} |`
  return [line(head), line(head.map((_, column) => (column === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n')
}

function profileTable(profiles: Profile[]): string {
  const names = [...new Set(profiles.flatMap(({ layers }) => [...layers.keys()]))]
  const sumOf = (name: string) => profiles.reduce((sum, { layers }) => sum + (layers.get(name) ?? 0), 0)
  const total = ({ layers }: Profile) => [...layers.values()].reduce((sum, each) => sum + each, 0)
  return table(
    ['CPU µs per request', ...profiles.map(({ workload, connections }) => `${workload} at ${connections}`)],
    [
      ...names
        .toSorted((a, b) => sumOf(b) - sumOf(a))
        .map(name => [name, ...profiles.map(({ layers }) => figure(layers.get(name) ?? 0, 1))]),
      ['**all**', ...profiles.map(each => `**${figure(total(each), 1)}**`)],
    ],
  )
}
