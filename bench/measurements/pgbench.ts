import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Dataset } from '../dataset/dataset.ts'
import { settle } from '../dataset/seed.ts'
import type { Server } from '../machine/postgres.ts'
import { cpuMsOfEndedChildren } from '../machine/processes.ts'
import { findProgram } from '../machine/programs.ts'
import { type Deployment, postgresCpuMs } from './measure.ts'
import { requireSameRows } from './sameness.ts'

export const statements = ['intent', 'intent-key'] as const
export type Statement = (typeof statements)[number]

/** The figures of pgbench at one number of clients. CPU times are per statement. */
export type Point = {
  clients: number
  perSecond: number
  averageMs: number
  failed: number
  postgresCpuMs: number
  loadCpuMs: number
}

const database = 'bench_pgbench'

const clientCounts = [1, 2, 4, 8, 16, 32, 64]

/**
 * Measures how fast bare PostgreSQL does the work of an intent in one statement, by number of clients.
 * @throws when the statement does not write the rows that the product writes
 */
export async function measureStatement(
  server: Server,
  dataset: Dataset,
  { statement, seconds, product }: { statement: Statement; seconds: number; product: Deployment },
): Promise<Point[]> {
  const url = await server.create(database, { template: dataset.template })
  try {
    await requireSameStatement(url, dataset, { statement, product })
    await run(url, dataset, { statement, clients: 8, seconds: 1 })
    const points: Point[] = []
    for (const clients of clientCounts) {
      await settle(url)
      const cpuBefore = { postgres: postgresCpuMs(server), load: cpuMsOfEndedChildren() }
      const { statements, ...point } = await run(url, dataset, { statement, clients, seconds })
      points.push({
        ...{ clients, ...point },
        postgresCpuMs: (postgresCpuMs(server) - cpuBefore.postgres) / statements,
        loadCpuMs: (cpuMsOfEndedChildren() - cpuBefore.load) / statements,
      })
    }
    return points
  } finally {
    await server.drop(database)
  }
}

/** @throws when the statement does not write the rows that the product writes */
export async function compareStatement(
  server: Server,
  dataset: Dataset,
  compared: { statement: Statement; product: Deployment },
): Promise<void> {
  const url = await server.create(database, { template: dataset.template })
  try {
    await requireSameStatement(url, dataset, compared)
  } finally {
    await server.drop(database)
  }
}

async function requireSameStatement(
  url: string,
  dataset: Dataset,
  { statement, product }: { statement: Statement; product: Deployment },
): Promise<void> {
  await requireSameRows(dataset, product, {
    ...{ statement, databaseUrl: url },
    execute: () => run(url, dataset, { statement, clients: 1, once: true }),
  })
}

async function run(
  url: string,
  { one }: Dataset,
  { statement, clients, ...length }: { statement: Statement; clients: number } & ({ seconds: number } | { once: true }),
) {
  const program = findProgram('pgbench')
  if (program === undefined) throw new Error('pgbench is missing')
  const script = fileURLToPath(new URL(`${statement}.sql`, import.meta.url))
  const { stdout } = await promisify(execFile)(program, [
    ...['-n', '-M', 'prepared', '-c', String(clients), '-j', String(Math.min(clients, 2))],
    ...('once' in length ? ['-t', '1'] : ['-T', String(length.seconds)]),
    // A single statement is compared with the product's request for the first member.
    ...['-D', `partner=${one.partnerId}`, '-D', `members=${'once' in length ? 1 : one.members}`, '-f', script, url],
  ])
  const figure = (pattern: RegExp) => Number(pattern.exec(stdout)?.[1] ?? Number.NaN)
  return {
    statements: figure(/transactions actually processed: ([0-9]+)/),
    failed: figure(/failed transactions: ([0-9]+)/),
    perSecond: figure(/tps = ([0-9.]+) \(without initial/),
    averageMs: figure(/latency average = ([0-9.]+) ms/),
  }
}
