import { audit, type Findings } from './auditor.ts'
import type { Bank } from './bank.ts'
import { type Partner, type RequestRecord, runClient, type Simulation } from './clients.ts'
import { drain } from './drain.ts'
import { createPartners } from './partners.ts'
import { type Process, runCommand } from './program.ts'
import { randomOf } from './random.ts'
import { type Receiver, subscribe } from './receiver.ts'
import { until } from './until.ts'

// How long clients may go on retrying after the end.
const graceMsMax = 30_000
const shownMax = 5

export type Scene = {
  databaseUrl: string
  logs: string
  settings?: Record<string, string>
  currency?: Partner['currency']
  seed: number
  processes: Process[]
  receiver: Receiver
  /** The clients' records of all requests. */
  log: RequestRecord[]
}

/** Creates partners once all processes are ready, and starts their clients. @returns when to end the clients, and how to wait for them */
export async function startClients({
  databaseUrl,
  currency = 'GBP',
  seed,
  processes,
  receiver,
  log,
}: Scene): Promise<{ partners: Partner[]; simulation: Simulation; end(): Promise<void> }> {
  await until(() => processes.every(each => each.isReady()), 'all processes are ready')
  const apis = processes.filter(({ role }) => role === 'API')
  const address = apis[0]?.address() ?? 'nowhere'
  const partners = await createPartners(databaseUrl, address, currency)
  for (const partner of partners) await subscribe(address, partner, receiver.url)
  let serial = 0
  let endedAt: number | undefined
  const simulation: Simulation = {
    addresses: () => apis.flatMap(each => each.address() ?? []),
    nextSerial: () => ++serial,
    isOver: () => endedAt !== undefined,
    hasStopped: () => endedAt !== undefined && Date.now() > endedAt + graceMsMax,
    add: record => log.push(record),
  }
  const clients = partners.flatMap((partner, partnerIndex) =>
    Array.from({ length: partner.clients }, (_, index) => {
      const name = `client-${partnerIndex + 1}-${index + 1}`
      return runClient(name, partner, simulation, randomOf(seed, name))
    }),
  )
  const end = async () => {
    endedAt = Date.now()
    await Promise.all(clients)
  }
  return { partners, simulation, end }
}

export type AllFindings = Findings & Record<'verify' | 'unfinished' | 'exited', string[]>

/** Stops the processes, finishes all work, and audits the database against what the clients and the receiver were told. */
export async function settle(
  { databaseUrl, logs, settings = {}, processes, receiver, log }: Scene,
  bank?: Bank,
): Promise<AllFindings> {
  await Promise.all(processes.map(each => each.stop()))
  bank?.hurry()
  const unfinished = await drain({ databaseUrl, logs, settings, bank })
  await bank?.stop()
  const exited = processes
    .filter(each => each.unexpectedExits() > 0)
    .map(({ name }) => `${name} exited unexpectedly; see its log`)
  // The product verifies its books as well. If only one of the two checks finds an error, the other one has a bug.
  const verify = await runCommand(databaseUrl, ['ledger', 'verify']).then(
    () => [],
    error => [`midmonth ledger verify: ${error.stdout} ${error.stderr}`],
  )
  const audited = await audit(databaseUrl, { log, accepted: receiver.accepted, books: bank?.books })
  return { ...audited, verify, unfinished, exited }
}

/** What was found: a count of each kind, and the first of each. */
export function findingsInWords(findings: AllFindings): { counts: [string, number][]; first: string[] } {
  const all = Object.entries(findings)
  return {
    counts: all.map(([kind, found]) => [kind, found.length]),
    first: all.flatMap(([kind, found]) => found.slice(0, shownMax).map(each => `${kind}: ${each}`)),
  }
}
