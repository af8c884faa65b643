import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Figures, firstIntentToComplete, measure, type Stand } from './cells.ts'
import { atEnd, end } from './ending.ts'
import { measureGrowth } from './growth.ts'
import { type Options, readOptions } from './options.ts'
import { measureOverload } from './overload.ts'
import { findProgram, measureStatement, type Statement, statements } from './pgbench.ts'
import { openServer, type Server, withClient } from './postgres.ts'
import { machineOf, type Results, reportOf } from './report.ts'
import { requireSameness } from './sameness.ts'
import { operate, type Side, startService } from './service.ts'
import { measureStarts } from './start.ts'
import { buildTown, type Town } from './town.ts'
import { type WorkloadName, workloads } from './workloads.ts'
import { type Load, sendLoad } from './wrk.ts'

// The product, a typical service and PostgreSQL alone, measured in turns: see README.md.

let isInterrupted = false
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    isInterrupted = true
    void end().finally(() => process.exit(130))
  })
}
try {
  const options = readOptions()
  requirePrograms(options)
  await bench(options)
} catch (error) {
  // What was measured just then fails as well, which is no news.
  if (!isInterrupted) console.error(`bench: ${error instanceof Error ? error.message : error}`)
  process.exitCode = 1
} finally {
  await end()
}

function requirePrograms({ workloads: named, parts }: Options): void {
  if (process.platform !== 'linux') throw new Error('This needs Linux: CPU times are read from /proc')
  const needsLoad = named.length > 0 || parts.has('overload') || parts.has('growth')
  if (needsLoad && findProgram('wrk') === undefined) {
    throw new Error('wrk is missing: install the package wrk, on Debian by apt-get install wrk')
  }
  if (parts.has('pgbench') && findProgram('pgbench') === undefined) {
    throw new Error('pgbench is missing: install the package postgresql, on Debian by apt-get install postgresql')
  }
}

async function bench(options: Options): Promise<void> {
  const folder = path.join(tmpdir(), `openwage-bench-${process.pid}`)
  mkdirSync(folder)
  atEnd(() => rmSync(folder, { recursive: true, force: true }))
  const server = await openServer()
  const results: Results = {
    machine: machineOf({ postgresVersion: server.version, now: new Date() }),
    ...{ cells: [], points: {}, starts: undefined, overload: undefined, grown: [], invalid: [] },
  }
  console.log(results.machine)
  const { productDir, typicalConnections, parts, seconds, rounds, isQuick } = options
  const where = { logs: folder, productDir, typicalConnections }
  const members = isQuick ? 10_000 : 100_000
  const needsTown =
    options.workloads.length > 0 || ['pgbench', 'start', 'overload'].some(part => parts.has(part as 'start'))
  if (needsTown) {
    const town = await buildTown(server, { folder, productDir, members })
    note(`seeded ${members} members of one partner, and as many of a hundred`)
    if (options.workloads.length > 0 || parts.has('pgbench')) {
      for (let round = 1; round <= rounds; round++) await measureRound(server, town, { round, where, options, results })
    }
    await measureAlone(server, town, { where, options, results })
    await server.drop(town.template)
  }
  if (parts.has('growth')) results.grown = await measureGrowth(server, where, { isQuick, rounds, seconds, note })
  for (const { size, workload, figures } of results.grown) {
    noteErrors(`growth ${workload} with ${size.members} members and ${size.intents} intents`, figures, results)
  }
  console.log(`\n${reportOf(results)}`)
  if (options.jsonFile !== undefined) writeFileSync(options.jsonFile, `${JSON.stringify(results, null, 2)}\n`)
  if (results.invalid.length > 0) process.exitCode = 1
}

type Context = {
  where: { logs: string; productDir: string; typicalConnections: number }
  options: Options
  results: Results
}

/** All workloads once, the two services in turns, each on a fresh copy of the town. */
async function measureRound(
  server: Server,
  town: Town,
  { round, where, options, results }: Context & { round: number },
) {
  const stands = [await standOf('product'), await standOf('typical')] as const
  if (round === 1) await requireSameness(town, stands)
  for (const { service } of stands) {
    await sendLoad(service.address, { ...loadOf('intent', town), firstIntent: 0 }, { connections: 64, seconds: 2 })
  }
  const before = await Promise.all(stands.map(({ databaseUrl }) => countRows(databaseUrl)))
  const answered = { product: 0, typical: 0 }
  for (const workload of options.workloads) {
    for (const connections of options.connections) {
      // Whoever is second may find the machine warmer, or busier with what the first has left.
      const turns = round % 2 === 1 ? stands : stands.toReversed()
      for (const stand of turns) {
        const { side } = stand.service
        const figures = await measure(server, stand, {
          ...{ workload: workloads[workload], connections, seconds: options.seconds },
          load: loadOf(workload, town),
        })
        results.cells.push({ workload, connections, side, round, ...figures })
        const cell = `${workload} at ${connections}, ${side}, round ${round}`
        noteErrors(cell, figures, results)
        note(`${cell}: ${Math.round(figures.perSecond)}/s, p50 ${figures.p50Ms} ms, p99 ${figures.p99Ms} ms`)
        if (workload !== 'mixed') answered[side] += figures.requests - figures.refused
      }
    }
    if (options.parts.has('pgbench') && isStatement(workload)) await measurePgbench(workload)
  }
  // Without workloads, PostgreSQL alone.
  if (options.parts.has('pgbench') && !options.workloads.some(isStatement)) {
    for (const statement of statements) await measurePgbench(statement)
  }

  for (const [index, { service, databaseUrl }] of stands.entries()) {
    const written = (await countRows(databaseUrl)) - (before[index] ?? 0)
    if (written < answered[service.side]) {
      results.invalid.push(`${service.side}, round ${round}: ${answered[service.side]} answers left ${written} rows`)
    }
    await service.stop()
  }
  note(await verify(stands[0].databaseUrl))
  for (const { service } of stands) await server.drop(databaseOf(service.side))

  async function standOf(side: Side): Promise<Stand> {
    const databaseUrl = await server.create(databaseOf(side), { template: town.template })
    const service = await startService(side, { ...where, databaseUrl })
    return { service, databaseUrl, employer: town.one, nextIntent: firstIntentToComplete }
  }

  async function measurePgbench(statement: Statement): Promise<void> {
    const points = await measureStatement(server, town, { statement, seconds: options.seconds, product: stands[0] })
    results.points[statement] = [...(results.points[statement] ?? []), points]
    for (const { clients, perSecond, failed } of points) {
      note(`pgbench ${statement} at ${clients}, round ${round}: ${Math.round(perSecond)}/s`)
      if (failed !== 0) results.invalid.push(`pgbench ${statement} at ${clients}: ${failed} statements failed`)
    }
  }

  async function verify(databaseUrl: string): Promise<string> {
    try {
      const said = await operate(['ledger', 'verify', '--json'], { databaseUrl, productDir: where.productDir })
      return `openwage ledger verify, round ${round}: the books agree (${JSON.parse(said).checks.length} checks)`
    } catch (error) {
      const { stdout = '' } = error as { stdout?: string }
      results.invalid.push(`the books of round ${round} disagree`)
      return `openwage ledger verify, round ${round}: ${stdout || error}`
    }
  }
}

/** What is measured of the product alone. */
async function measureAlone(server: Server, town: Town, { where, options, results }: Context): Promise<void> {
  const { parts, seconds } = options
  if (!parts.has('start') && !parts.has('overload')) return
  const databaseUrl = await server.create(databaseOf('product'), { template: town.template })
  if (parts.has('start')) {
    results.starts = await measureStarts({ ...where, databaseUrl })
    note(`start: ready after ${Math.round(results.starts.readyMs)} ms`)
  }
  if (parts.has('overload')) {
    const service = await startService('product', { ...where, databaseUrl })
    results.overload = await measureOverload(service, town, { databaseUrl, seconds })
    for (const { connections, statuses } of results.overload.floods) {
      note(`overload at ${connections}: ${JSON.stringify(statuses)}`)
      if (statuses.other > 0)
        results.invalid.push(`overload at ${connections}: ${statuses.other} answers of another status`)
    }
    await service.stop()
  }
  await server.drop(databaseOf('product'))
}

function loadOf(name: WorkloadName, town: Town): Omit<Load, 'firstIntent'> {
  const { one, keysOfOne, keysOfHundred, firstMemberOfHundred, membersOfEach } = town
  const {
    requests,
    isOfHundred = false,
    isHot = false,
  }: (typeof workloads)[WorkloadName] & Partial<Record<string, unknown>> = workloads[name]
  if (isOfHundred) {
    return { requests, keysFile: keysOfHundred, firstMember: firstMemberOfHundred, membersPerKey: membersOfEach }
  }
  return { requests, keysFile: keysOfOne, firstMember: one.firstMember, membersPerKey: isHot ? 1 : one.members }
}

/** Intents and withdrawals together: every answer of a hot operation leaves one row. */
async function countRows(databaseUrl: string): Promise<number> {
  const { rows } = await withClient(databaseUrl, client =>
    client.query<{ count: number }>(
      `select (select count(*) from withdrawal_intents where id not like 'wi\\_0000%')::integer
            + (select count(*) from withdrawals)::integer as count`,
    ),
  )
  return rows[0]?.count ?? 0
}

function noteErrors(cell: string, { refused, broken }: Figures, results: Results): void {
  if (refused + broken === 0) return
  const what = `${cell}: ${refused} answers of 400 and above, ${broken} broken connections or late answers`
  results.invalid.push(what)
  console.error(`INVALID ${what}`)
}

function isStatement(name: string): name is Statement {
  return statements.some(statement => statement === name)
}

function databaseOf(side: Side): string {
  return `bench_${side}`
}

function note(text: string): void {
  console.log(text)
}
