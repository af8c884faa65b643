import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { configDefaults, defineConfig } from 'vitest/config'
import Order from './test/runner/order.ts'
import { isRunOnCitus, skippedFiles } from './test/runner/skipped-on-citus.ts'

const isLong = process.env.TEST_LONG === '1'
// Node keeps what it compiles, also for the threads that read files.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('node_modules/.cache/compiled', import.meta.url))
const statements = process.env.MIDMONTH_TEST_STATEMENTS
const recorder = new URL('test/statements/record.ts', import.meta.url).href

// Tests know a server by its host.
const citus = process.env.MIDMONTH_TEST_CITUS_URL
if (citus) process.env.PGPORT = new URL(citus).port || '5432'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'packages/**/*.test.ts', 'test/**/*.test.ts', 'cli/**/*.test.ts'],
    ...(citus && { exclude: [...configDefaults.exclude, ...skippedFiles], testNamePattern: isRunOnCitus }),
    reporters: ['default', './test/runner/slowest.ts'],
    globalSetup: ['test/runner/postgres.ts', 'test/runner/console-build.ts'],
    // Half as many again as cores: tests wait for PostgreSQL, for processes and for limits of several seconds.
    // Not in long runs, which compute.
    maxWorkers: Math.ceil(availableParallelism() * (isLong ? 1 : 1.5)),
    // Loading the program takes a second of CPU time, so the files that a worker runs share its modules. What a file changes
    // in its process (environment, timers), it restores.
    isolate: false,
    // A worker keeps the modules and apps of its files; a small nursery would promote garbage to them.
    execArgv: ['--max-semi-space-size=64', ...(statements === undefined ? [] : ['--import', recorder])],
    // Statements of batches name their partner only with lanes per partner.
    env: statements === undefined ? {} : { MIDMONTH_LANES: 'partner' },
    // Node runs our TypeScript as it does in production. Vite would transform each of the 400 files for each worker again.
    experimental: { viteModuleRunner: false },
    sequence: { sequencer: Order },
    testTimeout: isLong ? 600_000 : 60_000,
    hookTimeout: 120_000,
    // What a test waits for can take seconds on a busy machine; the default is one.
    expect: { poll: { timeout: 15_000 } },
  },
})
