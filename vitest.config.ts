import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'packages/**/*.test.ts', 'test/**/*.test.ts', 'cli/**/*.test.ts'],
    reporters: ['default', './test/slowest.ts'],
    globalSetup: ['test/postgres.ts'],
    // Most of a test's time is PostgreSQL's.
    maxWorkers: '100%',
    // Loading the program takes a second of CPU time, so the files that a worker runs share its modules. What a file changes
    // in its process (environment, timers), it restores.
    isolate: false,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
