import fc from 'fast-check'
import { expect } from 'vitest'

// Shrinking ends before the test times out, so that the failure is shown.
const reportingMs = 20_000

export type Generated<A> = A extends fc.Arbitrary<infer T> ? T : never

/** Commands of one kind, for `fc.oneof`. */
export const often = <T extends object>(weight: number, command: { [K in keyof T]: fc.Arbitrary<T[K]> }) => ({
  ...{ weight, arbitrary: fc.record<T>(command) },
})
/** One of the values. A value that is repeated is likelier. */
export const is = <const T>(...values: T[]): fc.Arbitrary<T> => fc.constantFrom(...values)
/** True once in so many times. */
export const rarely = (one: number) => fc.nat({ max: one - 1 }).map(drawn => drawn === one - 1)

/** Chooses the newest entity, the one before, and so on. */
export function choose<T>(all: readonly T[], which: number): T | undefined {
  return all.at(-1 - (which % Math.max(1, all.length)))
}

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

type Modelled<S> = { now: number; apply(step: S): string; state(): Map<string, string> }
type Driven<S> = {
  now: Date
  perform(step: S): Promise<string>
  state(): Promise<Map<string, string>>
  disagreements(): Promise<string[]>
}

// Fees that are given back after they were invoiced are set off by the next invoice.
const neverNegative = /^(p\d )?(balance|payment|account (pending|invoiced|operator|written off))/

/** One run of a model beside the program. They must give the same response to every step, and then be in the same state. */
export class Run<S extends object> {
  readonly log: string[] = []
  readonly #model: Modelled<S>
  readonly #program: Driven<S>

  constructor(model: Modelled<S>, program: Driven<S>) {
    this.#model = model
    this.#program = program
  }

  async perform(step: S): Promise<void> {
    this.#program.now = new Date(this.#model.now)
    this.log.push(`${this.#program.now.toISOString()} ${fc.stringify(step)}`)
    const answer = await this.#program.perform(step).catch(error => this.fail([String(error)], error))
    this.log.push(`  ${answer}`)
    // After the program, which names what it creates.
    const expected = this.#model.apply(step)
    if (answer !== expected) this.fail([`the model says ${expected}, the program ${answer}`])
    await this.compare()
  }

  async compare(): Promise<void> {
    const [expected, found] = [this.#model.state(), await this.#program.state()]
    const differences = new Set([...expected.keys(), ...found.keys()])
      .values()
      .filter(key => expected.get(key) !== found.get(key))
      .map(
        key => `${key}: the model says ${expected.get(key) ?? 'nothing'}, the program ${found.get(key) ?? 'nothing'}`,
      )
    const negative = found.entries().filter(([key, value]) => neverNegative.test(key) && value.startsWith('-'))
    const wrong = [...differences, ...negative.map(([key, value]) => `${key} is ${value}`)]
    if (wrong.length > 0) this.fail(wrong)
  }

  /** Verifies the books. */
  async end(): Promise<void> {
    const disagreements = await this.#program.disagreements()
    if (disagreements.length > 0) this.fail(disagreements)
  }

  fail(found: readonly string[], cause?: unknown): never {
    throw new Error(`${found.join('\n')}\n\nafter\n${this.log.join('\n')}`, { cause })
  }
}
