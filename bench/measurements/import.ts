import { execFile } from 'node:child_process'
import { openAsBlob } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { writeKeys } from '../dataset/dataset.ts'
import { changeEvery, columns, writeMemberFile } from '../dataset/member-file.ts'
import { addTier, type Employer, seedEmployer, settle } from '../dataset/seed.ts'
import { type Load, type LoadFigures, startSteadyLoad } from '../load/wrk.ts'
import { fillLog, type Server, withClient } from '../machine/postgres.ts'
import { cpuMsOf, peakRssMbOf, resetPeakRss, rssMbOf } from '../machine/processes.ts'
import { findProgram } from '../machine/programs.ts'
import { operate, type Service, startService, type Where } from '../machine/service.ts'
import { postgresCpuMs } from './measure.ts'

/** The figures of one import, and its effect on the requests of another partner. */
export type Import = {
  round: number
  rows: number
  kind: 'first' | 'again'
  /** `psql \copy` of the same file into a plain table: the mean of one run before and one after the import. */
  copyMs: number
  /** From the request to its response: the file is read and planned. */
  planMs: number
  /** From the response to the end of the job. */
  applyMs: number
  /** The peak resident memory of the process, less what it held before. */
  grownMb: number
  /** The requests of another partner, before and during the import. */
  others: { before: LoadFigures; during: LoadFigures }
  /** Without the other partner's requests, each at its cost before the import. */
  cpuMs: CpuMs
  /** Why the figures are invalid; null if they are valid. */
  fault: string | null
}

type CpuMs = { service: number; postgres: number }

const database = 'bench_import'
const kinds = ['first', 'again'] as const
// Members of the other partner.
const others = { members: 1_000, connections: 8, secondsToWarmUp: 5, secondsBefore: 10, secondsMax: 1_800 }
const jobMsMax = 1_200_000
const pollMs = 50

/**
 * Imports a list of members into an empty partner, and then the same list with changes. The baseline is PostgreSQL reading
 * the same file. Every round has a fresh database and a fresh process.
 */
export async function measureImports(
  server: Server,
  where: Omit<Where, 'databaseUrl'>,
  { rows, rounds, imported }: { rows: number; rounds: number; imported: (figures: Import) => void },
): Promise<void> {
  const files = {
    first: path.join(where.logs, 'members-first.csv'),
    again: path.join(where.logs, 'members-again.csv'),
  }
  for (const kind of kinds) await writeMemberFile(files[kind], { rows, isChanged: kind === 'again' })
  for (let round = 1; round <= rounds; round++) {
    const databaseUrl = await server.create(database)
    if (round === 1) await fillLog(databaseUrl)
    await operate(['migrate'], { ...where, databaseUrl })
    const importer = await seedEmployer(databaseUrl, { name: 'Importer', firstMember: 0, members: 0 })
    await addTier(databaseUrl, importer, 'Silver')
    const other = await seedEmployer(databaseUrl, { name: 'Other', firstMember: 1, members: others.members })
    const keysFile = writeKeys(path.join(where.logs, 'import.keys'), [other])
    const { firstMember, members: membersPerKey } = other
    const load: Load = { requests: 'intent', keysFile, firstMember, membersPerKey, firstIntent: 0 }
    await settle(databaseUrl)
    const service = await startService('product', { ...where, databaseUrl, hasWorker: true })
    const deployment = { server, databaseUrl, service, importer, load }
    await measureOthers(deployment, () => sleep(others.secondsToWarmUp * 1_000))
    const before = await measureOthers(deployment, () => sleep(others.secondsBefore * 1_000))
    for (const kind of kinds) {
      const figures = await measureImport(deployment, { file: files[kind], kind, rows, before })
      const { during } = figures
      imported({ ...figures, round, rows, kind, others: { before: before.loadFigures, during } })
    }
    await service.stop()
    await server.drop(database)
  }
}

type Deployment = { server: Server; databaseUrl: string; service: Service; importer: Employer; load: Load }

async function measureImport(
  deployment: Deployment,
  { file, kind, rows, before }: { file: string; kind: Import['kind']; rows: number; before: Omit<Others, 'result'> },
) {
  const { databaseUrl, service, importer } = deployment
  const copyBeforeMs = await copy(databaseUrl, { file, table: `listed_${kind}` })
  await settle(databaseUrl)
  const { address, pid } = service
  const rssBeforeMb = rssMbOf(pid)
  resetPeakRss(pid)
  const during = await measureOthers(deployment, () => importFile(address, importer.key, file))
  const { result, loadFigures } = during
  const { planMs, applyMs, type } = result
  const grownMb = peakRssMbOf(pid) - rssBeforeMb
  const ofOthers = loadFigures.requests / before.loadFigures.requests
  const cpuMs = {
    service: during.cpuMs.service - before.cpuMs.service * ofOthers,
    postgres: during.cpuMs.postgres - before.cpuMs.postgres * ofOthers,
  }
  // The machine may have become slower in the meantime.
  const copyMs = (copyBeforeMs + (await copy(databaseUrl, { file, table: `listed_${kind}_after` }))) / 2
  const refused = loadFigures.refused + loadFigures.broken
  const fault =
    type !== 'Completed'
      ? `the job is ${type}`
      : ((await faultOfMembers(databaseUrl, { address, importer, file, kind, rows })) ??
        (refused === 0 ? null : `${refused} of ${loadFigures.requests} requests of the other partner failed`))
  return { copyMs, planMs, applyMs, grownMb, during: loadFigures, cpuMs, fault }
}

/** The baseline: psql reads the file into a table without indexes or constraints. */
async function copy(databaseUrl: string, { file, table }: { file: string; table: string }): Promise<number> {
  const psql = findProgram('psql')
  if (psql === undefined) throw new Error('psql is missing')
  await withClient(databaseUrl, client =>
    client.query(`create table ${table} (${columns.map(column => `${column} text`).join(', ')})`),
  )
  await settle(databaseUrl)
  const startedAt = performance.now()
  await promisify(execFile)(psql, [databaseUrl, '-qXc', `\\copy ${table} from '${file}' csv header`])
  return performance.now() - startedAt
}

async function importFile(address: string, key: string, file: string) {
  const ask = async (path: string, request?: RequestInit) => {
    const response = await fetch(address + path, { ...request, headers: { 'x-api-key': key, ...request?.headers } })
    const output = await response.text()
    if (!response.ok) throw new Error(`${path} returned ${response.status}: ${output.slice(0, 1_000)}`)
    return JSON.parse(output)
  }
  const startedAt = performance.now()
  const { jobId } = await ask('/v2/members/jobs/csv', {
    method: 'PUT',
    headers: { 'content-type': 'text/csv' },
    body: await openAsBlob(file),
  })
  const respondedAt = performance.now()
  for (;;) {
    const { progress } = await ask(`/v1/members/jobs/${jobId}`)
    const endedAt = performance.now()
    if (progress.type !== 'Processing' || endedAt - respondedAt > jobMsMax) {
      return { planMs: respondedAt - startedAt, applyMs: endedAt - respondedAt, type: String(progress.type) }
    }
    await sleep(pollMs)
  }
}

type Others<T = unknown> = { result: T; loadFigures: LoadFigures; cpuMs: CpuMs }

/** Runs work while another partner creates a few hundred intents a second. @returns the CPU time of both */
async function measureOthers<T>({ server, service, load }: Deployment, work: () => Promise<T>): Promise<Others<T>> {
  const { address, pid } = service
  const spent = (): CpuMs => ({ service: cpuMsOf(pid), postgres: postgresCpuMs(server) })
  const before = spent()
  const steady = startSteadyLoad(address, load, { connections: others.connections, seconds: others.secondsMax })
  try {
    const result = await work()
    const loadFigures = await steady.stop()
    const after = spent()
    const cpuMs = { service: after.service - before.service, postgres: after.postgres - before.postgres }
    return { result, loadFigures, cpuMs }
  } catch (error) {
    await steady.stop().catch(() => undefined)
    throw error
  }
}

/** Checks the result: every row of the file is a member, and only the changed members have changed. */
async function faultOfMembers(
  databaseUrl: string,
  {
    address,
    importer: { partnerId, key },
    file,
    kind,
    rows,
  }: { address: string; importer: Employer; file: string; kind: Import['kind']; rows: number },
): Promise<string | null> {
  const listed = new Set(linesOf(await readFile(file, 'utf8')))
  const exported = await fetch(`${address}/v1/members?statuses=invited`, {
    headers: { 'x-api-key': key, accept: 'text/csv' },
  })
  // An apostrophe keeps a spreadsheet from reading a phone number as a formula.
  const text = (await exported.text()).replaceAll(",'+", ',+')
  const same = linesOf(text).filter(line => listed.has(line)).length
  const { rows: found } = await withClient(databaseUrl, client =>
    client.query(
      `select (select count(*) from members where partner_id = $1)::integer as members,
              (select count(*) from members where partner_id = $1 and updated_at > created_at)::integer as changed,
              (select count(*) from events where partner_id = $1 and type like 'member.%')::integer as emitted`,
      [partnerId],
    ),
  )
  const changed = kind === 'first' ? 0 : rows / changeEvery
  const wanted = { members: rows, same: rows, changed, emitted: rows + changed }
  const counted = { ...found[0], same }
  const isRight = Object.entries(wanted).every(([name, count]) => counted[name] === count)
  return isRight ? null : `expected ${JSON.stringify(wanted)}, found ${JSON.stringify(counted)}`
}

/** The rows of a file of members, with the columns of the imported file in its order. */
function linesOf(csv: string): string[] {
  const [header = '', ...lines] = csv.replace('\ufeff', '').trimEnd().split('\r\n')
  const places = columns.map(column => header.split(',').indexOf(column))
  return lines.map(line => {
    const cells = line.split(',')
    return places.map(place => cells[place]).join()
  })
}
