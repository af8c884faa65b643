import { BaseSequencer, type TestSpecification } from 'vitest/node'

// Some files take long or wait for limits of several seconds; if one of them ran last, the other workers
// would be idle.
const first =
  /\/(test\/program|test\/properties|packages)\/|\/(access|sandbox-clock|console-.*|create-server|member-imports|seed|send|sftp|webhooks|worker)\.test\.ts$/

/** Starts the longest files first, even in a fresh checkout, where vitest does not know their durations. */
export default class Order extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return [...sorted.filter(file => first.test(file.moduleId)), ...sorted.filter(file => !first.test(file.moduleId))]
  }
}
