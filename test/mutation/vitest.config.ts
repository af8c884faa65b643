import { defineConfig } from 'vitest/config'

// For tests of pure functions, which run once for every mutant: without a database, and only until one fails.
export default defineConfig({
  test: { bail: 1, maxWorkers: 1, isolate: false, reporters: ['dot'], experimental: { viteModuleRunner: false } },
})
