/** Tests of a file that do not run on Citus, by title; all of the file, or of a pattern of files, if there are none. */
type Skipped = { file: string; reason: string; tests?: string[] }

/** What the suite skips with MIDMONTH_TEST_CITUS_URL. A test that would pass there does not belong here. */
const skipped: readonly Skipped[] = [
  {
    file: 'test/{alerts,browser,program,properties}/**',
    reason: 'not tried yet: these start programs, browsers and servers, or take sequences of random steps',
  },
  {
    file: 'packages/embedded-postgres/**',
    reason: 'the embedded PostgreSQL is one PostgreSQL',
  },
  {
    file: 'src/statements/statement.test.ts',
    reason: 'looks for the plan that the session of one PostgreSQL keeps',
    tests: ['the statement of a member, which looks into every month, is planned once per connection for all members'],
  },
  {
    file: 'src/events/events.test.ts',
    reason: 'reads a plan of one PostgreSQL',
    tests: ['finds a rare type by its index, without reading the others'],
  },
  {
    file: 'src/float/float.test.ts',
    reason:
      'Citus supports no nowait for the row of a partner, which is on every node; a batch there is of one partner',
    tests: ['a completion that crosses the floor never waits for the partner’s row in a shared batch'],
  },
  {
    file: 'src/closing/closing.test.ts',
    reason: 'a task runs there once for each partner, and the partner of the test is done within its time',
    tests: ['a task that takes too long makes way for others, and is scheduled again'],
  },
  {
    file: 'src/verification/detaching.test.ts',
    reason: 'midmonth ledger detach and attach do not work on Citus',
  },
  {
    file: 'test/roles.test.ts',
    reason:
      'Citus does not support rights to single columns on nodes, so the app role may update whole rows and the read role sees no table there',
    tests: [
      'the app role cannot change an event',
      'the app role cannot change the account of a held withdrawal',
      'the app role cannot change the amount of a held withdrawal',
      'the app role cannot pay a withdrawal to the account of another intent',
      'the app role cannot change the scopes of a key',
      'the app role cannot replace the secret of a key',
      'the app role cannot turn a sandbox into a live database',
      'the columns that a trigger protects are exactly those that the app role cannot update',
      'the read role can read the listed columns and change nothing',
      'every column of every table is either readable for the read role or withheld from it, as declared',
      'a column that a migration adds is unreadable for the read role until it is listed',
    ],
  },
]

/** The files without a test that runs on Citus. */
export const skippedFiles: string[] = skipped.flatMap(({ file, tests }) => (tests === undefined ? [file] : []))

const titles = skipped.flatMap(({ tests = [] }) => tests.map(title => RegExp.escape(title)))

/** Matches the full names of the tests that run on Citus. */
export const isRunOnCitus: RegExp = new RegExp(`^(?!.*(?:${titles.join('|')})$)`)

/** One sentence for each file and test. */
export const skippedInWords: string[] = skipped.flatMap(({ file, reason, tests }) =>
  (tests === undefined ? [file] : tests.map(title => `${file} > ${title}`)).map(
    what => `skipped on Citus: ${what}: ${reason}`,
  ),
)
