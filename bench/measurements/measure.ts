import { type Employer, seedPending, settle } from '../dataset/seed.ts'
import type { Workload } from '../load/workloads.ts'
import { type Load, type LoadFigures, sendLoad } from '../load/wrk.ts'
import { type Server, withClient } from '../machine/postgres.ts'
import { cpuMsOf, rssMbOf } from '../machine/processes.ts'
import type { Service } from '../machine/service.ts'

/** A service with its own database. */
export type Deployment = {
  service: Service
  databaseUrl: string
  /** The employer whose intents are completed. */
  employer: Employer
  /** The lowest unused intent number. */
  nextIntent: number
}

/** The figures of one measurement. CPU times are per request. */
export type Figures = LoadFigures & {
  serviceCpuMs: number
  postgresCpuMs: number
  loadCpuMs: number
  rssMb: number
  /** Why the figures are invalid; null if they are valid. */
  fault: string | null
}

/** Intents created to be completed are numbered from here, above those of any history. */
export const firstIntentToComplete = 1_000_000_000

const warmUpSeconds = 1
// An upper bound on the requests of a service whose speed is not known yet: per connection and second, and in total per
// second.
const perSecondMax = { perConnection: 4_000, total: 25_000 }

/** Measures one workload at one number of connections, after a warm-up with the same load. */
export async function measure(
  server: Server,
  deployment: Deployment,
  {
    workload,
    load,
    connections,
    seconds,
  }: { workload: Workload; load: Omit<Load, 'firstIntent'>; connections: number; seconds: number },
): Promise<Figures> {
  const { service, databaseUrl } = deployment
  const { address, pid } = service
  const first = Math.min(perSecondMax.perConnection * connections, perSecondMax.total) * warmUpSeconds
  const warmUp = await sendLoad(
    address,
    { ...load, firstIntent: await preparePending(deployment, workload, first) },
    { connections, seconds: warmUpSeconds },
  )
  // A cold service may be only half as fast as a warm one.
  const next = Math.ceil(warmUp.perSecond * seconds * 2) + 1_000
  const firstIntent = await preparePending(deployment, workload, next)
  await settle(databaseUrl)

  const rowsBefore = await countRows(databaseUrl)
  const cpuBefore = { service: cpuMsOf(pid), postgres: postgresCpuMs(server) }
  const loadFigures = await sendLoad(address, { ...load, firstIntent }, { connections, seconds })
  const perRequest = (ms: number) => ms / Math.max(1, loadFigures.requests)
  const figures = {
    ...loadFigures,
    serviceCpuMs: perRequest(cpuMsOf(pid) - cpuBefore.service),
    postgresCpuMs: perRequest(postgresCpuMs(server) - cpuBefore.postgres),
    loadCpuMs: perRequest(loadFigures.cpuMs),
    rssMb: rssMbOf(pid),
  }
  const rows = (await countRows(databaseUrl)) - rowsBefore
  return { ...figures, fault: faultOf(loadFigures, workload, rows) }
}

/** NaN if the processes of the server are not visible. */
export function postgresCpuMs({ postmasterPid }: Server): number {
  return postmasterPid === undefined ? Number.NaN : cpuMsOf(postmasterPid)
}

function faultOf({ requests, refused, broken }: LoadFigures, { writing }: Workload, rows: number): string | null {
  if (requests === 0) return 'no responses'
  if (refused > 0) return `${refused} of ${requests} responses had status 400 and above`
  if (broken > 0) return `${broken} connections broke or requests timed out`
  // Which requests write is random; fewer than nine tenths of the expected rows cannot be chance.
  const rowsMin = writing === 1 ? requests : requests * writing * 0.9
  if (rows < rowsMin) return `${requests} responses, but only ${rows} rows written`
  return null
}

/** Creates intents for this many requests to complete. @returns the number of the first intent */
export async function preparePending(
  deployment: Deployment,
  { completing, isHot }: Workload,
  requests: number,
): Promise<number> {
  const firstIntent = deployment.nextIntent
  if (completing === 0) return firstIntent
  // Which requests complete an intent is random; twice the expected share is enough.
  const count = Math.ceil(requests * Math.min(1, completing * 2))
  await seedPending(deployment.databaseUrl, deployment.employer, {
    firstIntent,
    count,
    ...(isHot ? { ofMembers: 1 } : {}),
  })
  deployment.nextIntent += count
  return firstIntent
}

/** Counts intents and withdrawals together: every measured request that writes leaves one of them. */
async function countRows(databaseUrl: string): Promise<number> {
  const { rows } = await withClient(databaseUrl, client =>
    client.query<{ count: number }>(
      `select ((select count(*) from withdrawal_intents) + (select count(*) from withdrawals))::integer as count`,
    ),
  )
  return rows[0]?.count ?? 0
}
