import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { Skipped } from './drill.ts'
import { missingRequirements } from './failover/requirements.ts'

export const title =
  'whichever way the primary or the majority of etcd is lost, nothing that was acknowledged is, and writes are back in time'

export async function run(say: (line: string) => void): Promise<void> {
  const missing = missingRequirements()
  if (missing !== undefined) throw new Skipped(missing)
  const program = path.join(import.meta.dirname, 'failover/failover.ts')
  const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] })
  for await (const line of createInterface(child.stdout)) say(line)
  if (child.exitCode === null) await once(child, 'exit')
  if (child.exitCode !== 0) throw new Error('The cluster lost something, or was late; see above')
}
