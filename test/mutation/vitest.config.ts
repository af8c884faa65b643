import { defineConfig } from 'vitest/config'

// For the files that instrumented.ts writes: each runs in a separate process, since each has another mutant.
export default defineConfig({
  test: {
    include: ['mutants/*.test.ts'],
    globalSetup: ['test/runner/postgres.ts'],
    maxWorkers: 2,
    isolate: true,
    reporters: ['json'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 5_000 } },
    experimental: { viteModuleRunner: false },
  },
})
