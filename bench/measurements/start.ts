import { setTimeout as sleep } from 'node:timers/promises'
import { rssMbOf } from '../machine/processes.ts'
import { startService, type Where } from '../machine/service.ts'
import { median } from './median.ts'

export type Starts = { readyMs: number; idleRssMb: number }

const starts = 5
// By then, work deferred from the start is done and its garbage collected.
const idleMs = 3_000

/** Measures the time from the product's spawn to `/readyz`, and its memory when idle. */
export async function measureStarts(where: Where): Promise<Starts> {
  const readyMs: number[] = []
  const idleRssMb: number[] = []
  for (let start = 0; start < starts; start++) {
    const service = await startService('product', where)
    readyMs.push(service.startMs)
    await sleep(idleMs)
    idleRssMb.push(rssMbOf(service.pid))
    await service.stop()
  }
  return { readyMs: median(readyMs), idleRssMb: median(idleRssMb) }
}
