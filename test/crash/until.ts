import { setTimeout as sleep } from 'node:timers/promises'

// Ten times what an idle machine needs.
const waitMsMax = 60_000

/** Waits for a condition. @throws if it is not met within a minute */
export async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = Date.now() + waitMsMax
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`Timed out after ${waitMsMax / 1_000} s waiting until ${what}`)
    await sleep(20)
  }
}
