import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { buildDataset } from './dataset/dataset.ts'
import { workloads as allWorkloads } from './load/workloads.ts'
import { atEnd, end } from './machine/cleanup.ts'
import { openServer } from './machine/postgres.ts'
import { findProgram } from './machine/programs.ts'
import { measureBankFiles } from './measurements/bank-files.ts'
import { type Closing, measureClosing } from './measurements/closing.ts'
import { hasChromium, measureConsole } from './measurements/console.ts'
import { measureGrowth, nameOf } from './measurements/growth.ts'
import { type Import, measureImports } from './measurements/import.ts'
import { measureProductAlone } from './measurements/product-alone.ts'
import { measureProfiles } from './measurements/profile.ts'
import { measureRequestLog } from './measurements/request-log.ts'
import { noteFault, type Results } from './measurements/results.ts'
import { checkSameness, measureRounds } from './measurements/rounds.ts'
import { measureWebhooks } from './measurements/webhooks.ts'
import { type Options, readOptions } from './options.ts'
import { machineOf, reportOf } from './report.ts'

// Measures the product, a typical service and bare PostgreSQL in turns: see README.md.

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
  // An interrupted measurement fails too; that failure is not worth reporting.
  if (!isInterrupted) console.error(`bench: ${error instanceof Error ? error.message : error}`)
  process.exitCode = 1
} finally {
  await end()
}

async function bench(options: Options): Promise<void> {
  const folder = path.join(tmpdir(), `midmonth-bench-${process.pid}`)
  mkdirSync(folder)
  atEnd(() => rmSync(folder, { recursive: true, force: true }))
  const server = await openServer()
  const results: Results = {
    machine: machineOf({ postgresVersion: server.version, now: new Date() }),
    ...{
      cells: [],
      points: {},
      starts: undefined,
      overload: undefined,
      logCosts: [],
      profiles: [],
      imports: [],
      closings: [],
      webhooks: undefined,
      bankFiles: [],
      console: [],
      grown: [],
      invalid: [],
    },
  }
  console.log(results.machine)
  const { workloads, parts, productDir, typicalConnections, isQuick } = options
  const where = { logs: folder, productDir, typicalConnections }
  const hasRounds = workloads.length > 0 || parts.has('pgbench')
  const isAlone = parts.has('start') || parts.has('overload')
  // The rounds begin with the same check.
  const isOnlyCompared = parts.has('sameness') && !hasRounds
  if (hasRounds || isAlone || isOnlyCompared || parts.has('request-log') || parts.has('profile')) {
    const startedAt = performance.now()
    const hasHundred = workloads.some(name => allWorkloads[name].isOfHundred)
    const dataset = await buildDataset(server, { folder, productDir, members: isQuick ? 10_000 : 100_000, hasHundred })
    const others = hasHundred ? ', and as many members of a hundred other partners' : ''
    const tookS = Math.round((performance.now() - startedAt) / 1_000)
    console.log(`seeded ${dataset.one.members} members of one partner${others} in ${tookS} s`)
    if (isOnlyCompared) await checkSameness({ server, dataset, where, options, results })
    if (hasRounds) await measureRounds({ server, dataset, where, options, results })
    if (isAlone) await measureProductAlone(server, dataset, { where, options, results })
    if (parts.has('request-log')) {
      results.logCosts = await measureRequestLog(server, dataset, { where, options })
      for (const { workload, fault } of results.logCosts) noteFault(results, `request log, ${workload}`, fault)
    }
    if (parts.has('profile')) results.profiles = await measureProfiles(server, dataset, { where, options })
    await server.drop(dataset.template)
  }
  if (parts.has('import')) {
    const imported = (figures: Import) => {
      const { round, kind, copyMs, planMs, applyMs, grownMb, others, fault } = figures
      results.imports.push(figures)
      const name = `import: round ${round}, ${kind}`
      console.log(
        `${name}: read and planned in ${Math.round(planMs)} ms, applied in ${Math.round(applyMs)} ms, ` +
          `${((planMs + applyMs) / copyMs).toFixed(1)} × \\copy, ${Math.round(grownMb)} MB more, ` +
          `p99 of others ${others.during.p99Ms} ms instead of ${others.before.p99Ms} ms, ` +
          `p50 ${others.during.p50Ms} instead of ${others.before.p50Ms}`,
      )
      noteFault(results, name, fault)
    }
    await measureImports(server, where, { rows: options.importRows, rounds: options.rounds, imported })
  }
  if (parts.has('closing')) {
    const closed = (figures: Closing) => {
      const { round, members, totalMs, boundaryMs, writes, fault } = figures
      results.closings.push(figures)
      console.log(
        `closing: round ${round}, ${members} members in ${(totalMs / 1_000).toFixed(1)} s, ` +
          `the next cycle open after ${Math.round(boundaryMs)} ms, p99 of ${writes.during.count} writes ` +
          `${Math.round(writes.during.p99Ms)} ms instead of ${Math.round(writes.before.p99Ms)} ms`,
      )
      noteFault(results, `closing: round ${round}`, fault)
    }
    await measureClosing(server, where, { members: options.closingMembers, rounds: options.rounds, closed })
  }
  if (parts.has('webhooks')) results.webhooks = await measureWebhooks(server, where, options)
  if (parts.has('bank-files')) {
    const payments = isQuick ? 10_000 : 100_000
    results.bankFiles = await measureBankFiles(server, { folder, productDir, payments, rounds: options.rounds })
  }
  if (parts.has('console')) {
    // 21 visits by default: 7 to each of three processes, whose first visit is a cold one.
    const visits = isQuick ? 2 : 7
    const { rounds, beforeDir } = options
    results.console = await measureConsole(
      server,
      { logs: folder, productDir, typicalConnections },
      { rounds, visits, beforeDir },
    )
  }
  if (parts.has('growth')) {
    results.grown = await measureGrowth(server, where, options)
    for (const { size, workload, figures } of results.grown) {
      noteFault(results, `${workload} with ${nameOf(size)}`, figures.fault)
    }
  }
  console.log(`\n${reportOf(results)}`)
  if (options.jsonFile !== undefined) writeFileSync(options.jsonFile, `${JSON.stringify(results, null, 2)}\n`)
  if (results.invalid.length > 0) process.exitCode = 1
}

function requirePrograms({ workloads, parts }: Options): void {
  if (process.platform !== 'linux') throw new Error('The benchmark needs Linux: it reads CPU times from /proc')
  const sendsLoad =
    workloads.length > 0 ||
    parts.has('overload') ||
    parts.has('request-log') ||
    parts.has('profile') ||
    parts.has('import') ||
    parts.has('webhooks') ||
    parts.has('growth')
  if (sendsLoad && findProgram('wrk') === undefined) {
    throw new Error('wrk is missing; install it (on Debian: apt-get install wrk)')
  }
  if (parts.has('console') && !hasChromium())
    throw new Error('Chromium is missing; install it (on Debian: apt-get install -y --no-install-recommends chromium)')
  for (const [part, program] of [
    ['pgbench', 'pgbench'],
    ['import', 'psql'],
    ['bank-files', 'psql'],
  ] as const) {
    if (parts.has(part) && findProgram(program) === undefined) {
      throw new Error(`${program} is missing; install PostgreSQL (on Debian: apt-get install postgresql)`)
    }
  }
}
