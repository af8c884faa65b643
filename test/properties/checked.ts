import fc from 'fast-check'
import { expect } from 'vitest'

// Shrinking ends before the test times out, so that the failure is shown.
const reportingMs = 20_000

/**
 * Checks a property. Fails with the smallest counterexample found in time and the command that reproduces it.
 * @param options.timeoutMs the time-out of the test
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
