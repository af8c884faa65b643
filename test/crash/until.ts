import { setTimeout as sleep } from 'node:timers/promises'

// What takes seconds on an idle machine may take ten times that on a busy one.
const waitMsMax = 60_000

/** @throws when it does not hold within a minute */
export async function until(holds: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + waitMsMax
  while (!holds()) {
    if (Date.now() > deadline) throw new Error(`Waited ${waitMsMax / 1_000} s, and still it does not hold that ${what}`)
    await sleep(20)
  }
}
