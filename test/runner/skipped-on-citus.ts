/** A test file, or one test in it, that does not run on Citus. */
type Skipped = { file: string; test?: string; reason: string }

const replans = 'a plan is made on the coordinator and on the node, and sessions there are not those of the test'

/** What the suite skips with MIDMONTH_TEST_CITUS_URL. A test that would pass there does not belong here. */
const skipped: readonly Skipped[] = [
  {
    file: 'src/statements/statement.test.ts',
    test: 'the statement of a member, which looks into every month, is planned once per connection for all members',
    reason: replans,
  },
]

/** The files without a test that runs on Citus. */
export const skippedFiles: string[] = skipped.flatMap(({ file, test }) => (test === undefined ? [file] : []))

/** Matches the full names of the tests that run on Citus. */
export const isRunOnCitus: RegExp = new RegExp(
  `^(?!.*(?:${skipped.flatMap(({ test }) => (test === undefined ? [] : [RegExp.escape(test)])).join('|')})$)`,
)

/** One sentence for each entry. */
export const skippedInWords: string[] = skipped.map(
  ({ file, test, reason }) => `skipped on Citus: ${file}${test === undefined ? '' : ` > ${test}`}: ${reason}`,
)
