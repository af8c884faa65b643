import { expect, test } from 'vitest'
import { startEmbeddedPostgres } from './embedded.ts'

test('if the embedded PostgreSQL cannot run, the message names DATABASE_URL', async () => {
  await expect(startEmbeddedPostgres({ checkoutDir: '/', dataDir: '/dev/null/data' })).rejects.toThrow(
    /use a PostgreSQL server of your own \(set DATABASE_URL\)$/,
  )
})
