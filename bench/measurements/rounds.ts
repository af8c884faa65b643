import { type Dataset, loadOf } from '../dataset/dataset.ts'
import { type WorkloadName, workloads } from '../load/workloads.ts'
import type { Server } from '../machine/postgres.ts'
import { findProgram } from '../machine/programs.ts'
import { operate, type Side, startService, type Where } from '../machine/service.ts'
import type { Options } from '../options.ts'
import { type Deployment, firstIntentToComplete, measure } from './measure.ts'
import { compareStatement, measureStatement, type Statement, statements } from './pgbench.ts'
import { noteFault, type Results } from './results.ts'
import { requireSameness } from './sameness.ts'
import { warmUp } from './warm-up.ts'

type Run = { server: Server; dataset: Dataset; where: Omit<Where, 'databaseUrl'>; options: Options; results: Results }

/** Checks that the typical service and the statements for pgbench do what the product does, without timing them. */
export async function checkSameness(run: Run): Promise<void> {
  const { server, dataset } = run
  const deployments = [await deploy(run, 'product'), await deploy(run, 'typical')] as const
  await requireSameness(dataset, deployments)
  console.log('the typical service does what the product does')
  if (findProgram('pgbench') === undefined) console.log('skipped the statements for pgbench, which is not installed')
  else {
    for (const statement of statements) {
      await compareStatement(server, dataset, { statement, product: deployments[0] })
      console.log(`${statement}.sql does what the product does`)
    }
  }
  for (const { service } of deployments) await service.stop()
  await verifyBooks(run, deployments[0], 'sameness')
  for (const { service } of deployments) await server.drop(databaseOf(service.side))
}

/** Measures every workload at every number of connections, in every round. */
export async function measureRounds(run: Run): Promise<void> {
  for (let round = 1; round <= run.options.rounds; round++) await measureRound(run, round)
}

/** Measures the two services in turns, each on a fresh copy of the dataset, and bare PostgreSQL after the same workload. */
async function measureRound(run: Run, round: number): Promise<void> {
  const { server, dataset, options } = run
  const deployments = [await deploy(run, 'product'), await deploy(run, 'typical')] as const
  if (round === 1) await requireSameness(dataset, deployments)
  const completes = options.workloads.some(name => workloads[name].completing > 0)
  for (const deployment of deployments) await warmUp(deployment, { dataset, completes })
  // The machine may still be busy with the first service's work when the second one's turn comes.
  const turns = round % 2 === 1 ? deployments : deployments.toReversed()
  const alone = new Set(options.parts.has('pgbench') ? statements : [])
  for (const workload of options.workloads) {
    for (const connections of options.connections) {
      for (const deployment of turns) await measureCell(run, deployment, { workload, connections, round })
    }
    const statement = statements.find(name => name === workload)
    if (statement !== undefined && alone.delete(statement))
      await measureAlone(run, deployments[0], { statement, round })
  }
  // Bare PostgreSQL is measured even if none of its workloads was asked for.
  if (!statements.some(statement => options.workloads.includes(statement))) {
    for (const statement of alone) await measureAlone(run, deployments[0], { statement, round })
  }
  for (const { service } of deployments) await service.stop()
  await verifyBooks(run, deployments[0], `round ${round}`)
  for (const { service } of deployments) await server.drop(databaseOf(service.side))
}

async function deploy({ server, dataset, where }: Run, side: Side): Promise<Deployment> {
  const databaseUrl = await server.create(databaseOf(side), { template: dataset.template })
  const service = await startService(side, { ...where, databaseUrl })
  return { service, databaseUrl, employer: dataset.one, nextIntent: firstIntentToComplete }
}

async function measureCell(
  { server, dataset, options, results }: Run,
  deployment: Deployment,
  { workload, connections, round }: { workload: WorkloadName; connections: number; round: number },
): Promise<void> {
  const { side } = deployment.service
  const figures = await measure(server, deployment, {
    ...{ workload: workloads[workload], connections, seconds: options.seconds },
    load: loadOf(workloads[workload], dataset),
  })
  results.cells.push({ workload, connections, side, round, ...figures })
  const cell = `round ${round}, ${workload} at ${connections}, ${side}`
  console.log(
    `${cell}: ${Math.round(figures.perSecond)}/s, p50 ${figures.p50Ms} ms, p99 ${figures.p99Ms} ms, CPU ms a request: ` +
      `service ${figures.serviceCpuMs.toFixed(3)}, PostgreSQL ${figures.postgresCpuMs.toFixed(3)}`,
  )
  noteFault(results, cell, figures.fault)
}

async function measureAlone(
  { server, dataset, options, results }: Run,
  product: Deployment,
  { statement, round }: { statement: Statement; round: number },
): Promise<void> {
  const points = await measureStatement(server, dataset, { statement, seconds: options.seconds, product })
  results.points[statement] = [...(results.points[statement] ?? []), points]
  for (const { clients, perSecond, failed } of points) {
    const point = `round ${round}, pgbench ${statement} at ${clients}`
    console.log(`${point}: ${Math.round(perSecond)}/s`)
    noteFault(results, point, failed === 0 ? null : `${failed} statements failed`)
  }
}

/** Checks the result: the product verifies all its books. */
async function verifyBooks({ where, results }: Run, { databaseUrl }: Deployment, part: string): Promise<void> {
  try {
    const output = await operate(['ledger', 'verify', '--json'], { ...where, databaseUrl })
    console.log(`${part}, midmonth ledger verify: the books agree in ${JSON.parse(output).checks.length} checks`)
  } catch (error) {
    const { stdout } = error as { stdout?: string }
    noteFault(results, `${part}, midmonth ledger verify`, `${stdout || error}`)
  }
}

function databaseOf(side: Side): string {
  return `bench_${side}`
}
