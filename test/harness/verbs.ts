import type { Logger } from 'pino'
import type { Db } from '../../src/database/database.ts'
import type { Clock } from '../../src/kernel/time.ts'
import type { FileRailSettings } from '../../src/payouts/books/file-rail-settings.ts'
import type { Channel } from '../../src/payouts/channels/channel.ts'
import { toRail } from '../../src/payouts/channels/files/configure.ts'
import { openSimulatedBank } from '../../src/payouts/registry.ts'
import type { TaskName, Tasks } from '../../src/worker/task.ts'
import { type ApiResponse, type Call, locatedId } from './api-response.ts'

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
  clock: { now: Clock }
  log: Logger
  channels: readonly Channel[] | undefined
  rails: readonly FileRailSettings[]
}
type Quoted = { memberId: string; amount?: number; currency?: string; key?: string | undefined }

/** What members and the worker of a harness do. A step that the API refuses throws. */
export function verbsOf({ call, addMember, db, clock, log, ...own }: Of) {
  /** @returns the id of the intent */
  async function createIntent({ memberId, amount = 5_000, currency = 'GBP', ...as }: Quoted): Promise<string> {
    const quoted = await call('POST', '/v1/pay/withdrawals/intent', {
      ...as,
      body: { memberId, amount: { amount, currency } },
    })
    if (quoted.status !== 201) throw new Error(`Creating an intent failed: ${quoted.text}`)
    return quoted.body.withdrawalIntentId
  }

  /** @returns the id of the withdrawal */
  async function completeIntent(withdrawalIntentId: string, as: { key?: string | undefined } = {}): Promise<string> {
    const completed = await call('POST', '/v1/pay/withdrawals/complete', { ...as, body: { withdrawalIntentId } })
    if (completed.status !== 201) throw new Error(`Completing an intent failed: ${completed.text}`)
    return locatedId(completed)
  }

  /** @returns the id of the withdrawal */
  async function withdraw(quoted: Quoted): Promise<string> {
    return await completeIntent(await createIntent(quoted), { key: quoted.key })
  }

  return {
    createIntent,
    completeIntent,
    withdraw,

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

    /**
     * Runs a task of the worker once.
     * @param options.channels by default those of `options.rails`
     * @param options.rails by default those of the harness; if it has none, the simulated bank pays
     */
    async runTask(
      name: TaskName,
      options: { channels?: readonly Channel[]; rails?: readonly FileRailSettings[]; log?: Logger } = {},
    ): Promise<void> {
      const { rails = own.rails } = options
      const { internalTasks, payoutTasks } = await import('../../src/tasks.ts')
      const channels = options.channels ?? (options.rails ? undefined : own.channels) ?? (await channelsOf(rails))
      const tasks: Partial<Tasks> = { ...internalTasks, ...payoutTasks(channels) }
      const task = tasks[name]
      if (task === undefined) throw new Error(`The harness does not run the task ${name}`)
      await task({ db, log: options.log ?? log, now: clock.now })
    },
  }

  async function channelsOf(rails: readonly FileRailSettings[]): Promise<Channel[]> {
    const connected = { db, now: clock.now }
    if (rails.length === 0) return [await openSimulatedBank(connected)]
    return await Promise.all(rails.map(settings => toRail(settings).openChannel(connected)))
  }
}
