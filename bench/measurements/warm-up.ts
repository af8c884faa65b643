import { type Dataset, loadOf } from '../dataset/dataset.ts'
import { workloads } from '../load/workloads.ts'
import { sendLoad } from '../load/wrk.ts'
import { preparePending, type Stand } from './measure.ts'

/**
 * Runs the code of both operations until it is compiled. A batch runs its code once for all its commands, so at 64 connections
 * the product's is still interpreted after seconds in which the typical service's has been compiled; few connections make many
 * small batches.
 */
export async function warmUp(
  stand: Stand,
  { dataset, completes }: { dataset: Dataset; completes: boolean },
): Promise<void> {
  const { address } = stand.service
  const seconds = 2
  const intents = { ...loadOf(workloads.intent, dataset), firstIntent: 0 }
  await sendLoad(address, intents, { connections: 64, seconds })
  await sendLoad(address, intents, { connections: 4, seconds })
  if (!completes) return
  const firstIntent = await preparePending(stand, workloads.complete, pendingMax)
  await sendLoad(
    address,
    { ...loadOf(workloads.complete, dataset), firstIntent },
    { connections: 4, seconds: 2 * seconds },
  )
}

// More than a service completes over four connections in four seconds.
const pendingMax = 16_000
