import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import Order from './test/order.ts'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'packages/**/*.test.ts', 'test/**/*.test.ts', 'cli/**/*.test.ts'],
    reporters: ['default', './test/slowest.ts'],
    globalSetup: ['test/postgres.ts'],
    // Half as many again as cores: tests wait for PostgreSQL, for processes and for limits of several seconds.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    // Loading the program takes a second of CPU time, so the files that a worker runs share its modules. What a file changes
    // in its process (environment, timers), it restores.
    isolate: false,
    sequence: { sequencer: Order },
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
