import fc from 'fast-check'
import { expect } from 'vitest'

// A failure must be shown, so shrinking ends before the test times out.
const reportingMs = 20_000

/**
 * Checks a property, and fails with the smallest counterexample that was found in time and with how to reproduce it.
 * @param options.timeoutMs of the test
 */
export async function checkRuns<T>(
  property: fc.IAsyncProperty<T>,
  {
    runs,
    seed,
    path,
    file,
    timeoutMs,
  }: { runs: number; seed: number; path?: string | undefined } & {
    file: string
    timeoutMs: number
  },
): Promise<void> {
  const details = await fc.check(property, {
    ...{ numRuns: runs, seed, interruptAfterTimeLimit: timeoutMs - reportingMs },
    ...(path === undefined ? {} : { path }),
  })
  if (!details.failed) return
  const { counterexample, counterexamplePath, errorInstance, numRuns } = details
  if (counterexample === null) expect.fail(`only ${numRuns} of ${runs} runs ended within the time-out`)
  const found = errorInstance instanceof Error ? errorInstance.message : String(errorInstance)
  const reproduction = `PROPERTY_SEED=${seed} PROPERTY_PATH=${counterexamplePath} npx vitest run ${file}`
  expect.fail(
    `${found}\n\nafter ${numRuns} runs, from ${fc.stringify(counterexample)}; to reproduce it:\n${reproduction}`,
  )
}
