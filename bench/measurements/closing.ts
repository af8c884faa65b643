import { setTimeout as sleep } from 'node:timers/promises'
import { type Employer, seedEmployer, settle } from '../dataset/seed.ts'
import { type Server, withClient } from '../machine/postgres.ts'
import { operate, type Service, startService, type Where } from '../machine/service.ts'

/** Writes of the partner: how many, their latencies, and how many failed with a 5xx. */
type Writes = { count: number; p50Ms: number; p99Ms: number; maxMs: number; failed: number }

/** The closing of a pay cycle whose members all have unused pay, and the partner's writes beside it. */
export type Closing = {
  round: number
  members: number
  /** From the moment the cycle is over to its final deductions. */
  totalMs: number
  /** From that moment until the next cycle is open. */
  boundaryMs: number
  writes: { before: Writes; during: Writes }
  /** Why the figures are invalid; null if they are valid. */
  fault: string | null
}

const database = 'bench_closing'
// Each withdrawal takes three writes, of a random member: pay, intent, completion.
const withdrawalsPerSecond = 10
const secondsToWarmUp = 5
const secondsBefore = 15
const closingMsMax = 600_000
const pollMs = 20

/** Every round has a fresh database and fresh processes: one for the requests, and one for the worker. */
export async function measureClosing(
  server: Server,
  where: Omit<Where, 'databaseUrl'>,
  { members, rounds, closed }: { members: number; rounds: number; closed: (figures: Closing) => void },
): Promise<void> {
  for (let round = 1; round <= rounds; round++) {
    const databaseUrl = await server.create(database)
    await operate(['migrate'], { ...where, databaseUrl })
    const employer = await seedEmployer(databaseUrl, { name: 'Large', firstMember: 0, members })
    await settle(databaseUrl)
    const api = await startService('product', { ...where, databaseUrl })
    const worker = await startService('product', { ...where, databaseUrl, hasWorker: true })
    const writing = new Writing(api, employer)
    await sleep(secondsToWarmUp * 1_000)
    writing.take()
    await sleep(secondsBefore * 1_000)
    const before = writing.take()
    const { totalMs, boundaryMs } = await close(databaseUrl, employer)
    const during = writing.take()
    await writing.stop()
    const fault = (await faultOf(databaseUrl, { employer, productDir: where.productDir })) ?? faultOfWrites(during)
    closed({ round, members, totalMs, boundaryMs, writes: { before, during }, fault })
    await worker.stop()
    await api.stop()
    await server.drop(database)
  }
}

/** Makes the cycle over, and waits until it is closed. */
async function close(databaseUrl: string, { partnerId, payCycleId }: Employer) {
  return await withClient(databaseUrl, async client => {
    const cycle = [partnerId, payCycleId]
    await client.query(
      `update pay_cycles set start_date = start_date - 31, end_date = current_date - 1 where partner_id = $1 and id = $2`,
      cycle,
    )
    await client.query(`select graphile_worker.add_job('close-pay-cycles')`)
    const startedAt = performance.now()
    for (let boundaryMs: number | undefined; ; ) {
      const { rows } = await client.query<{ hasEnded: boolean; isReleased: boolean }>(
        `select status = 'Closed' as "hasEnded", released_at is not null as "isReleased"
           from pay_cycles where partner_id = $1 and id = $2`,
        cycle,
      )
      const elapsedMs = performance.now() - startedAt
      if (rows[0]?.hasEnded) boundaryMs ??= elapsedMs
      if (rows[0]?.isReleased) return { totalMs: elapsedMs, boundaryMs: boundaryMs ?? elapsedMs }
      if (elapsedMs > closingMsMax) throw new Error('The pay cycle did not close')
      await sleep(pollMs)
    }
  })
}

/** Withdraws at a steady rate: a slow response does not delay the next withdrawal. */
class Writing {
  readonly #service: Service
  readonly #employer: Employer
  readonly #timer: NodeJS.Timeout
  readonly #running = new Set<Promise<void>>()
  #latencies: number[] = []
  #failed = 0

  constructor(service: Service, employer: Employer) {
    this.#service = service
    this.#employer = employer
    this.#timer = setInterval(() => {
      const withdrawal = this.#withdraw()
      this.#running.add(withdrawal)
      void withdrawal.finally(() => this.#running.delete(withdrawal))
    }, 1_000 / withdrawalsPerSecond)
  }

  /** Returns the figures since the last call. */
  take(): Writes {
    const sorted = this.#latencies.toSorted((a, b) => a - b)
    const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
    const writes = { count: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1), failed: this.#failed }
    this.#latencies = []
    this.#failed = 0
    return writes
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all(this.#running)
  }

  async #withdraw(): Promise<void> {
    const { firstMember, members } = this.#employer
    const number = firstMember + Math.floor(Math.random() * members)
    const memberId = `mem_${String(number).padStart(26, '0')}`
    const money = { amount: 5_000, currency: 'GBP' }
    await this.#write('/v1/pay/run', { payDetails: [{ memberId, money }] })
    const intent = await this.#write('/v1/pay/withdrawals/intent', { memberId, amount: money })
    // Refused if the cycle ended in between.
    if (intent.withdrawalIntentId === undefined) return
    const { withdrawalIntentId } = intent
    await this.#write('/v1/pay/withdrawals/complete', { withdrawalIntentId })
  }

  async #write(path: string, body: object): Promise<{ withdrawalIntentId?: string }> {
    const startedAt = performance.now()
    try {
      const response = await fetch(this.#service.address + path, {
        method: 'POST',
        headers: { 'x-api-key': this.#employer.key, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      const answer = await response.text()
      if (response.status >= 500) this.#failed += 1
      return response.ok && answer !== '' ? JSON.parse(answer) : {}
    } catch {
      this.#failed += 1
      return {}
    } finally {
      this.#latencies.push(performance.now() - startedAt)
    }
  }
}

async function faultOf(
  databaseUrl: string,
  { employer, productDir }: { employer: Employer; productDir: string },
): Promise<string | null> {
  const { partnerId, payCycleId, members } = employer
  const { rows } = await withClient(databaseUrl, client =>
    client.query<{ released: string; left: string }>(
      `select (select count(*) from ledger_transfers
                where partner_id = $1 and pay_cycle_id = $2 and reason = 'pay_cycle.closed') as released,
              (select count(*) from ledger_balances
                where partner_id = $1 and pay_cycle_id = $2 and available > 0) as left`,
      [partnerId, payCycleId],
    ),
  )
  const [found] = rows
  if (Number(found?.released) !== members || Number(found?.left) !== 0)
    return `${found?.released} of ${members} members were released, ${found?.left} are left`
  return await operate(['ledger', 'verify'], { databaseUrl, productDir }).then(
    () => null,
    () => 'the books disagree',
  )
}

function faultOfWrites({ count, failed }: Writes): string | null {
  if (count === 0) return 'the partner made no writes'
  return failed === 0 ? null : `${failed} of ${count} writes failed`
}

export function closingTable(closings: Closing[]): string {
  const rows = closings.map(({ round, totalMs, boundaryMs, writes: { before, during } }) => {
    const ms = (value: number) => value.toFixed(0)
    const cells = [round, (totalMs / 1_000).toFixed(1), ms(boundaryMs), during.count]
    return [...cells, ms(during.p50Ms), ms(during.p99Ms), ms(during.maxMs), ms(before.p50Ms), ms(before.p99Ms)]
  })
  const members = closings[0]?.members.toLocaleString('en')
  const header = [`Closing of ${members} members: round`, 's', 'next cycle open after ms', 'writes', 'p50 ms', 'p99 ms']
  const columns = [...header, 'max ms', 'p50 before ms', 'p99 before ms']
  return [columns, columns.map(() => '---'), ...rows].map(cells => `| ${cells.join(' | ')} |`).join('\n')
}
