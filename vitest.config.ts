import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'packages/**/*.test.ts', 'test/**/*.test.ts', 'cli/**/*.test.ts'],
    reporters: ['default', './test/slowest.ts'],
    globalSetup: ['test/postgres.ts'],
    // Most of a test's time is PostgreSQL's.
    maxWorkers: '100%',
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
