import { defineConfig } from 'vitest/config'

// For the files that instrumented.ts writes: each runs in a separate process, since each has another mutant.
export default defineConfig({
  test: {
    include: ['mutants/*.test.ts'],
    globalSetup: ['test/runner/postgres.ts'],
    maxWorkers: 2,
    isolate: true,
    reporters: ['json'],
    // As long as in the project's own runs: a slow machine must not look like a mutant that was noticed.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 15_000 } },
    experimental: { viteModuleRunner: false },
  },
})
