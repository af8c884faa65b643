import { setTimeout as sleep } from 'node:timers/promises'
import { rssMbOf } from '../machine/processes.ts'
import { startService, type Where } from '../machine/service.ts'
import { median } from './median.ts'

export type Starts = { readyMs: number; idleRssMb: number }

const starts = 5
// What a start leaves to be done afterwards, and to be collected, has been by then.
const idleMs = 3_000

/** The time from the product's spawn to `/readyz`, and its memory when idle. */
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
