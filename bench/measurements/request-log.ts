import { type Dataset, loadOf } from '../dataset/dataset.ts'
import { type WorkloadName, workloads } from '../load/workloads.ts'
import type { Server } from '../machine/postgres.ts'
import { startService, type Where } from '../machine/service.ts'
import type { Options } from '../options.ts'
import { type Deployment, type Figures, firstIntentToComplete, measure } from './measure.ts'
import { median } from './median.ts'
import { warmUp } from './warm-up.ts'

/** The cost of the request log for one workload: figures with the log over figures without, as medians of adjacent pairs. */
export type LogCost = { workload: WorkloadName; perSecond: number; cpu: number; p99: number; fault: string | null }

const measuredWorkloads: WorkloadName[] = ['intent', 'complete-key', 'mixed']
// Enough to keep both cores busy.
const connections = 64

/** Measures the product with the request log on and off, in turns, each on a fresh copy of the dataset. */
export async function measureRequestLog(
  server: Server,
  dataset: Dataset,
  { where, options }: { where: Omit<Where, 'databaseUrl'>; options: Options },
): Promise<LogCost[]> {
  const pairs = measuredWorkloads.map(workload => ({ workload, on: [] as Figures[], off: [] as Figures[] }))
  for (let round = 1; round <= options.rounds; round++) {
    const deployments = { on: await deploy('on'), off: await deploy('off') }
    for (const deployment of [deployments.on, deployments.off]) await warmUp(deployment, { dataset, completes: true })
    for (const pair of pairs) {
      const { workload } = pair
      // Each setting comes first once, because the first measurement runs code that is less warm.
      for (const log of ['on', 'off', 'off', 'on'] as const) {
        const load = loadOf(workloads[workload], dataset)
        const { seconds } = options
        const figures = await measure(server, deployments[log], {
          workload: workloads[workload],
          load,
          connections,
          seconds,
        })
        pair[log].push(figures)
        const cpuMs = (figures.serviceCpuMs + figures.postgresCpuMs).toFixed(3)
        console.log(
          `round ${round}, ${workload}, request log ${log}: ${Math.round(figures.perSecond)}/s, ` +
            `p99 ${figures.p99Ms} ms, CPU ms a request ${cpuMs}`,
        )
      }
    }
    for (const log of ['on', 'off'] as const) {
      await deployments[log].service.stop()
      await server.drop(databaseOf(log))
    }
  }
  return pairs.map(({ workload, on, off }) => {
    // Per adjacent pair, because the machine drifts by more than the log costs.
    const ratio = (figure: (each: Figures) => number) =>
      median(on.map((each, pair) => figure(each) / figure(off[pair] ?? each)))
    return {
      workload,
      perSecond: ratio(each => each.perSecond),
      cpu: ratio(each => each.serviceCpuMs + each.postgresCpuMs),
      p99: ratio(each => each.p99Ms),
      fault: [...on, ...off].find(({ fault }) => fault !== null)?.fault ?? null,
    }
  })

  async function deploy(log: 'on' | 'off'): Promise<Deployment> {
    const databaseUrl = await server.create(databaseOf(log), { template: dataset.template })
    const settings = { MIDMONTH_REQUEST_LOG: log }
    const service = await startService('product', { ...where, databaseUrl, settings })
    return { service, databaseUrl, employer: dataset.one, nextIntent: firstIntentToComplete }
  }
}

function databaseOf(log: 'on' | 'off'): string {
  return `bench_log_${log}`
}
