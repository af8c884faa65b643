import { BaseSequencer, type TestSpecification } from 'vitest/node'

// Tests of whole processes take longest, and some files wait for limits of several seconds; one of them that came last would
// run while the other workers have nothing to do.
const first =
  /\/(test\/program|test\/properties|packages)\/|\/(outages|member-imports|create-server|upload|seed|worker)\.test\.ts$/

/** Starts the longest files first, also in a fresh checkout, where vitest does not know their durations. */
export default class Order extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return [...sorted.filter(file => first.test(file.moduleId)), ...sorted.filter(file => !first.test(file.moduleId))]
  }
}
