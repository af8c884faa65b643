import type { Dataset } from '../dataset/dataset.ts'
import type { Server } from '../machine/postgres.ts'
import { startService, type Where } from '../machine/service.ts'
import type { Options } from '../options.ts'
import { measureOverload } from './overload.ts'
import { noteFault, type Results } from './results.ts'
import { measureStarts } from './start.ts'

/** Takes the measurements without a baseline: the product's start, and its behaviour under overload. */
export async function measureProductAlone(
  server: Server,
  dataset: Dataset,
  { where, options, results }: { where: Omit<Where, 'databaseUrl'>; options: Options; results: Results },
): Promise<void> {
  const { parts, seconds } = options
  const database = 'bench_alone'
  const databaseUrl = await server.create(database, { template: dataset.template })
  if (parts.has('start')) {
    results.starts = await measureStarts({ ...where, databaseUrl })
    console.log(`start: ready after ${Math.round(results.starts.readyMs)} ms`)
  }
  if (parts.has('overload')) {
    const service = await startService('product', { ...where, databaseUrl })
    results.overload = await measureOverload(service, dataset, { databaseUrl, seconds })
    for (const { kind, statuses } of results.overload.floods) {
      const flood = `overload by ${kind}`
      console.log(`${flood}: ${JSON.stringify(statuses)}`)
      noteFault(results, flood, statuses.other === 0 ? null : `${statuses.other} responses had an unexpected status`)
    }
    await service.stop()
  }
  await server.drop(database)
}
