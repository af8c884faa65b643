import type { Reporter, TestModule } from 'vitest/node'

const shownMax = 10

/** Prints the slowest tests at the end of a run, so that a slow test is noticed. */
export default class Slowest implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap(module =>
      [...module.children.allTests()].map(test => ({
        name: `${module.relativeModuleId} > ${test.fullName}`,
        ms: test.diagnostic()?.duration ?? 0,
      })),
    )
    // vitest prints every test of a short run anyway.
    if (tests.length <= shownMax * 10) return
    const slowest = tests.toSorted((a, b) => b.ms - a.ms).slice(0, shownMax)
    console.log(`\n Slowest ${shownMax} tests`)
    for (const { name, ms } of slowest) console.log(`  ${(ms / 1_000).toFixed(1).padStart(6)} s  ${name}`)
  }
}
