import type { Logger } from 'pino'
import type { Db } from '../../src/database/database.ts'
import { defaultRetention, type Retention } from '../../src/kernel/retention.ts'
import type { Clock } from '../../src/kernel/time.ts'
import type { FileRailSettings } from '../../src/payouts/books/file-rail-settings.ts'
import type { Channel } from '../../src/payouts/channels/channel.ts'
import { toRail } from '../../src/payouts/channels/files/configure.ts'
import { openSimulatedBank } from '../../src/payouts/registry.ts'
import { verify } from '../../src/verification/verify.ts'
import type { TaskName, Tasks } from '../../src/worker/task.ts'
import type { FileBank } from '../banks/file-bank.ts'
import { type ApiResponse, type Call, locatedId } from './api-response.ts'
import { citusUrl } from './citus.ts'

export type NewMember = {
  available?: number
  currency?: string
  tier?: string
  account?: object | null
  key?: string | undefined
}
type Of = {
  call(method: string, path: string, options?: Call): Promise<ApiResponse>
  addMember(options: NewMember): Promise<string>
  db: Db
  clock: { now: Clock; advance(by: { minutes?: number; seconds?: number }): void }
  log: Logger
  channels: readonly Channel[] | undefined
  rails: readonly FileRailSettings[]
}
type As = { key?: string | undefined; headers?: Record<string, string> }
type Quoted = As & { memberId: string; amount?: number; currency?: string }
type Work = { channels?: readonly Channel[]; rails?: readonly FileRailSettings[]; retention?: Retention; log?: Logger }

/** What members, banks and the worker of a harness do. A step that the API refuses throws, unless it returns the response. */
export function verbsOf({ call, addMember, db, clock, log, ...own }: Of) {
  /** @returns the response, also a refusal */
  async function requestIntent({ memberId, amount = 5_000, currency = 'GBP', ...as }: Quoted): Promise<ApiResponse> {
    return await call('POST', '/v1/pay/withdrawals/intent', { ...as, body: { memberId, amount: { amount, currency } } })
  }

  /** @returns the response, also a refusal */
  async function requestCompletion(withdrawalIntentId: string, as: As = {}): Promise<ApiResponse> {
    return await call('POST', '/v1/pay/withdrawals/complete', { ...as, body: { withdrawalIntentId } })
  }

  /** @returns the id of the intent */
  async function createIntent(quoted: Quoted): Promise<string> {
    const created = await requestIntent(quoted)
    if (created.status !== 201) throw new Error(`Creating an intent failed: ${created.text}`)
    return created.body.withdrawalIntentId
  }

  /** @returns the id of the withdrawal */
  async function completeIntent(withdrawalIntentId: string, as: As = {}): Promise<string> {
    const completed = await requestCompletion(withdrawalIntentId, as)
    if (completed.status !== 201) throw new Error(`Completing an intent failed: ${completed.text}`)
    return locatedId(completed)
  }

  /** @returns the id of the withdrawal */
  async function withdraw(quoted: Quoted): Promise<string> {
    return await completeIntent(await createIntent(quoted), { key: quoted.key })
  }

  /**
   * Runs a task of the worker once.
   * @param options.channels by default those of `options.rails`
   * @param options.rails by default those of the harness; if it has none, the simulated bank pays
   */
  async function runTask(name: TaskName, options: Work = {}): Promise<void> {
    const { rails = own.rails, retention = defaultRetention } = options
    const { internalTasks, payoutTasks, retentionTasks } = await import('../../src/tasks.ts')
    const channels = options.channels ?? (options.rails ? undefined : own.channels) ?? (await channelsOf(rails))
    const tasks: Partial<Tasks> = { ...internalTasks, ...payoutTasks(channels), ...retentionTasks(retention) }
    // Where partners are on several nodes, no transaction works for all of them.
    const { [name]: task } = citusUrl !== undefined ? (await import('../../src/worker.ts')).inEachScope(tasks) : tasks
    if (task === undefined) throw new Error(`The harness does not run the task ${name}`)
    await task({ db, log: options.log ?? log, now: clock.now })
  }

  return {
    requestIntent,
    createIntent,
    requestCompletion,
    completeIntent,
    withdraw,
    runTask,

    /**
     * Creates a member and a withdrawal.
     * @param options.net what reaches the member's bank account. The member pays a fee of 50 on top, except in tier `Gold`.
     */
    async addWithdrawal({
      net = 5_000,
      available = 20_000,
      currency = 'GBP',
      key,
      ...member
    }: NewMember & { net?: number | undefined } = {}): Promise<{ id: string; memberId: string }> {
      const memberId = await addMember({ available, currency, key, ...member })
      const amount = member.tier === 'Gold' ? net : net + 50
      return { id: await withdraw({ memberId, amount, currency, key }), memberId }
    },

    async getWithdrawal(id: string, key?: string) {
      return (await call('GET', `/v1/pay/withdrawals/${id}`, { key })).body
    },

    async availableOf(memberId: string, key?: string): Promise<number> {
      return (await call('GET', `/v1/pay/members/${memberId}/balance`, { key })).body.available.amount
    },

    /** Submits the held withdrawals, and `hours` later sends the batches whose cut-off has come. */
    async sendBatches({ hours = 5, ...work }: Work & { hours?: number } = {}): Promise<void> {
      clock.advance({ seconds: 30 })
      await runTask('submit-withdrawals', work)
      clock.advance({ minutes: hours * 60 })
      await runTask('send-payout-batches', work)
    },

    /**
     * Lets the bank of a file rail answer, imports its file, and records what the file reports.
     * @param file the text, or the lines of the plain format without the last
     * @returns 'imported', or why the file was rejected
     */
    async bankAnswers(bank: FileBank, file: string | readonly string[], work: Work = {}): Promise<string> {
      const name = bank.answer(file)
      await runTask('read-bank-files', work)
      await runTask('read-rail-reports', work)
      return bank.rejected.get(name) ?? 'imported'
    },

    /** The checks of the books that fail. */
    async disagreements() {
      return (await verify(db)).filter(({ disagreement }) => disagreement !== null)
    },
  }

  async function channelsOf(rails: readonly FileRailSettings[]): Promise<Channel[]> {
    const connected = { db, now: clock.now }
    if (rails.length === 0) return [await openSimulatedBank(connected)]
    return await Promise.all(rails.map(settings => toRail(settings).openChannel(connected)))
  }
}
