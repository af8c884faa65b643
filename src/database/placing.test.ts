import { expect, test } from 'vitest'
import { startHarness } from '../../test/harness/harness.ts'
import { planDistribution } from './placing.ts'

test('a database without Citus is left as it is, and told what is missing', async () => {
  const harness = await startHarness()
  const client = await harness.pool.connect()
  try {
    await expect(planDistribution(client, harness.db)).rejects.toThrow(
      'This database has no extension citus: add citus to shared_preload_libraries on every node',
    )
  } finally {
    client.release()
    await harness.stop()
  }
})
