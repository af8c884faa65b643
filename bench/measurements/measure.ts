import { type Employer, seedPending, settle } from '../dataset/seed.ts'
import type { Workload } from '../load/workloads.ts'
import { type Load, type LoadFigures, sendLoad } from '../load/wrk.ts'
import { type Server, withClient } from '../machine/postgres.ts'
import { cpuMsOf, rssMbOf } from '../machine/processes.ts'
import type { Service } from '../machine/service.ts'

/** A service with its own database. */
export type Stand = {
  service: Service
  databaseUrl: string
  /** Whose intents are completed. */
  employer: Employer
  /** The first number that no intent has yet. */
  nextIntent: number
}

/** What one measurement gave. CPU times are per request. */
export type Figures = LoadFigures & {
  serviceCpuMs: number
  postgresCpuMs: number
  loadCpuMs: number
  rssMb: number
  /** Why it must not be believed; null when it may. */
  fault: string | null
}

/** Intents made for completing have numbers from here on, above those of every past. */
export const firstIntentToComplete = 1_000_000_000

const warmUpSeconds = 1
// Before anything is known of how fast a service is, this many per connection and second are surely enough, and so are
// this many in all.
const perSecondMax = { perConnection: 4_000, inAll: 25_000 }

/** Measures one workload at one number of connections, on a service that was warmed up with the same. */
export async function measure(
  server: Server,
  stand: Stand,
  {
    workload,
    load,
    connections,
    seconds,
  }: { workload: Workload; load: Omit<Load, 'firstIntent'>; connections: number; seconds: number },
): Promise<Figures> {
  const { service, databaseUrl } = stand
  const { address, pid } = service
  const first = Math.min(perSecondMax.perConnection * connections, perSecondMax.inAll) * warmUpSeconds
  const warmUp = await sendLoad(
    address,
    { ...load, firstIntent: await preparePending(stand, workload, first) },
    { connections, seconds: warmUpSeconds },
  )
  // A cold service may be half as fast as a warm one.
  const next = Math.ceil(warmUp.perSecond * seconds * 2) + 1_000
  const firstIntent = await preparePending(stand, workload, next)
  await settle(databaseUrl)

  const rowsBefore = await countRows(databaseUrl)
  const cpuBefore = { service: cpuMsOf(pid), postgres: postgresCpuMs(server) }
  const seen = await sendLoad(address, { ...load, firstIntent }, { connections, seconds })
  const perRequest = (ms: number) => ms / Math.max(1, seen.requests)
  const figures = {
    ...seen,
    serviceCpuMs: perRequest(cpuMsOf(pid) - cpuBefore.service),
    postgresCpuMs: perRequest(postgresCpuMs(server) - cpuBefore.postgres),
    loadCpuMs: perRequest(seen.cpuMs),
    rssMb: rssMbOf(pid),
  }
  const rows = (await countRows(databaseUrl)) - rowsBefore
  return { ...figures, fault: faultOf(seen, workload, rows) }
}

/** NaN where the server's processes cannot be seen. */
export function postgresCpuMs({ postmasterPid }: Server): number {
  return postmasterPid === undefined ? Number.NaN : cpuMsOf(postmasterPid)
}

function faultOf({ requests, refused, broken }: LoadFigures, { writing }: Workload, rows: number): string | null {
  if (requests === 0) return 'nothing was answered'
  if (refused > 0) return `${refused} of ${requests} answers were of 400 and above`
  if (broken > 0) return `${broken} connections broke or answers never came`
  // Which requests write is random; less than nine tenths of the expected rows is more than chance.
  const rowsMin = writing === 1 ? requests : requests * writing * 0.9
  if (rows < rowsMin) return `${requests} answers have left ${rows} rows`
  return null
}

/** Makes intents for this many requests to complete. @returns the number of the first of them */
export async function preparePending(stand: Stand, { completing, isHot }: Workload, requests: number): Promise<number> {
  const firstIntent = stand.nextIntent
  if (completing === 0) return firstIntent
  // Each request completes an intent at random; twice the share is enough.
  const count = Math.ceil(requests * Math.min(1, completing * 2))
  await seedPending(stand.databaseUrl, stand.employer, { firstIntent, count, ...(isHot ? { ofMembers: 1 } : {}) })
  stand.nextIntent += count
  return firstIntent
}

/** Intents and withdrawals together: everything that is measured and writes leaves one of them. */
async function countRows(databaseUrl: string): Promise<number> {
  const { rows } = await withClient(databaseUrl, client =>
    client.query<{ count: number }>(
      `select ((select count(*) from withdrawal_intents) + (select count(*) from withdrawals))::integer as count`,
    ),
  )
  return rows[0]?.count ?? 0
}
