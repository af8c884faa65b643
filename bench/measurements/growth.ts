import { statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { writeKeys } from '../dataset/dataset.ts'
import { type Employer, seedEmployer, settle } from '../dataset/seed.ts'
import { workloads } from '../load/workloads.ts'
import { type Server, withClient } from '../machine/postgres.ts'
import { operate, startService, type Where } from '../machine/service.ts'
import type { Options } from '../options.ts'
import { type Deployment, type Figures, firstIntentToComplete, measure } from './measure.ts'

/** The number of rows in the database before the measurement. */
export type Size = { members: number; intents: number }

export type Grown = { size: Size; workload: 'intent' | 'complete'; round: number; figures: Figures }

const pending = 30_000
const connections = 64
// Disk space of one row with its share of the indexes.
const bytesPerMember = 1_900
const bytesPerIntent = 2_500

function sizesOf(isQuick: boolean): Size[] {
  const [small, large] = isQuick
    ? [[1e3, 1e4, 1e5], [1e4, 2e5]] // biome-ignore format: one line per kind
    : [
        [1e3, 1e5, 1e6, 1e7],
        [1e5, 1e6, 1e7],
      ]
  return [
    ...(small ?? []).map(members => ({ members, intents: 1_000 })),
    ...(large ?? []).map(intents => ({ members: 1e5, intents })),
  ]
}

/** Measures the product on databases of very different sizes, in turns. */
export async function measureGrowth(
  server: Server,
  where: Omit<Where, 'databaseUrl'>,
  { isQuick, rounds, seconds }: Pick<Options, 'isQuick' | 'rounds' | 'seconds'>,
): Promise<Grown[]> {
  const sites: { size: Size; url: string; employer: Employer; keysFile: string; nextIntent: number }[] = []
  for (const size of sizesOf(isQuick)) {
    const bytesMissing = await bytesMissingFor(size)
    if (bytesMissing > 0) {
      console.log(`growth: skipped ${nameOf(size)}; it needs ${Math.ceil(bytesMissing / 1e9)} GB more disk`)
      continue
    }
    const startedAt = performance.now()
    const name = `bench_growth_${size.members}_${size.intents}`
    const url = await server.create(name)
    await operate(['migrate'], { databaseUrl: url, productDir: where.productDir })
    const past = { intents: size.intents, pending }
    const employer = await seedEmployer(url, { name, firstMember: 0, members: size.members, past })
    await settle(url)
    const keysFile = writeKeys(path.join(where.logs, `${name}.keys`), [employer])
    sites.push({ size, url, employer, keysFile, nextIntent: firstIntentToComplete })
    console.log(`growth: seeded ${nameOf(size)} in ${Math.round((performance.now() - startedAt) / 1_000)} s`)
  }

  const grown: Grown[] = []
  for (let round = 1; round <= rounds; round++) {
    for (const site of sites) {
      const { size, url, employer, keysFile } = site
      await readIntoMemory(url)
      const service = await startService('product', { ...where, databaseUrl: url })
      const deployment: Deployment = { service, databaseUrl: url, employer, nextIntent: site.nextIntent }
      const load = { keysFile, firstMember: employer.firstMember, membersPerKey: employer.members }
      for (const workload of ['intent', 'complete'] as const) {
        const figures = await measure(server, deployment, {
          ...{ workload: workloads[workload], connections, seconds },
          load: { ...load, requests: workload },
        })
        grown.push({ size, workload, round, figures })
        console.log(`growth: round ${round}, ${nameOf(size)}, ${workload}: ${Math.round(figures.perSecond)}/s`)
      }
      site.nextIntent = deployment.nextIntent
      await service.stop()
    }
  }
  return grown
}

export function nameOf({ members, intents }: Size): string {
  return `${members.toLocaleString('en')} members, ${intents.toLocaleString('en')} intents`
}

async function bytesMissingFor({ members, intents }: Size): Promise<number> {
  const { bavail, bsize } = await statfs(tmpdir())
  // Plus the room that the write-ahead log may take, and a reserve.
  const spare = 4e9
  return members * bytesPerMember + intents * bytesPerIntent + spare - bavail * bsize
}

// Read everything into memory, as a service does within a day: the disk is not what is measured.
async function readIntoMemory(url: string): Promise<void> {
  await withClient(url, async client => {
    for (const isIndex of [false, true]) {
      await client.query(`set enable_seqscan = ${!isIndex}; set enable_indexonlyscan = ${isIndex}`)
      await client.query('select count(id) from members')
      await client.query('select count(member_id) from ledger_balances')
    }
  })
}
