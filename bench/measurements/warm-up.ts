import { type Dataset, loadOf } from '../dataset/dataset.ts'
import { workloads } from '../load/workloads.ts'
import { sendLoad } from '../load/wrk.ts'
import { type Deployment, preparePending } from './measure.ts'

/**
 * Runs the code of both operations until V8 has compiled it. A batch runs its code once for all its commands, so at 64
 * connections the product's code is still interpreted when the typical service's is compiled; few connections make many
 * small batches.
 */
export async function warmUp(
  deployment: Deployment,
  { dataset, completes }: { dataset: Dataset; completes: boolean },
): Promise<void> {
  const { address } = deployment.service
  const seconds = 2
  const intents = { ...loadOf(workloads.intent, dataset), firstIntent: 0 }
  await sendLoad(address, intents, { connections: 64, seconds })
  await sendLoad(address, intents, { connections: 4, seconds })
  if (!completes) return
  const firstIntent = await preparePending(deployment, workloads.complete, pendingMax)
  await sendLoad(
    address,
    { ...loadOf(workloads.complete, dataset), firstIntent },
    { connections: 4, seconds: 2 * seconds },
  )
}

// More than a service completes over four connections in four seconds.
const pendingMax = 16_000
