import type { Tx } from '../../src/database/database.ts'
import * as exceptions from '../../src/payouts/books/exceptions.ts'
import type { FileRailSettings } from '../../src/payouts/books/file-rail-settings.ts'
import type { TaskName } from '../../src/worker/task.ts'
import { euroRail, FileBank } from '../banks/file-bank.ts'
import { type Harness, startHarness } from '../harness/harness.ts'

/** A payment sent to the bank. Each belongs to a different member. */
export type SentPayment = { id: string; reference: string; memberId: string }

// 11:00 in Berlin, on a Tuesday.
const start = new Date('2026-03-10T10:00:00.000Z')

/** One file rail with its bank, for tests of bank answers. */
export class FileRailScene {
  readonly harness: Harness
  readonly settings: FileRailSettings
  readonly #bank: FileBank

  private constructor(harness: Harness, settings: FileRailSettings, bank: FileBank) {
    this.harness = harness
    this.settings = settings
    this.#bank = bank
  }

  static async start(changes: Partial<FileRailSettings> = {}): Promise<FileRailScene> {
    const bank = new FileBank()
    const settings = euroRail({ delivery: async () => bank, ...changes })
    const harness = await startHarness({
      ...{
        bankOf: currency => (currency === 'EUR' ? 'connected' : 'simulated'),
        rails: [settings],
        startAt: start,
      },
    })
    return new FileRailScene(harness, settings, bank)
  }

  /** Moves to the next Tuesday, so that each test has its own batch. */
  async nextWeek(): Promise<void> {
    // Batches of the new week are approved automatically, even after an earlier give-back.
    await this.harness.pool.query(
      'update payout_batches set brake_released_at = given_back_at where given_back_at is not null and brake_released_at is null',
    )
    await this.send([])
    const { rows } = await this.harness.pool.query(`select max(created_at) as latest from withdrawals`)
    const latest: Date | null = rows[0].latest
    if (latest === null) return this.harness.clock.set(start)
    const weeks = Math.floor((latest.getTime() - start.getTime()) / (7 * 86_400_000)) + 1
    this.harness.clock.set(new Date(start.getTime() + weeks * 7 * 86_400_000))
  }

  run = async (task: TaskName) => await this.harness.runTask(task)

  inTx = async <T>(run: (tx: Tx) => Promise<T>) => await this.harness.inTx(run)

  /** Creates a member who withdraws the available balance, or less. The member pays a fee of 50. */
  async withdraw(net: number, { available = net + 50, key = this.harness.key } = {}) {
    return await this.harness.addWithdrawal({ currency: 'EUR', net, available, key })
  }

  /** Makes a member withdraw once more, without sending a file. */
  async withdrawAgain(memberId: string, net: number): Promise<void> {
    await this.harness.withdraw({ memberId, amount: net + 50, currency: 'EUR' })
  }

  /** Makes withdrawals and sends their file: one batch with a payment for each net amount. */
  async sent(...nets: number[]): Promise<{ payments: SentPayment[]; batchId: string; messageId: string }> {
    const withdrawn: { id: string; memberId: string }[] = []
    for (const net of nets) withdrawn.push(await this.withdraw(net))
    return await this.send(withdrawn)
  }

  async send(withdrawn: { id: string; memberId: string }[]) {
    const { db, sendBatches } = this.harness
    await sendBatches({ hours: 4 })
    const payments = await Promise.all(
      withdrawn.map(async each => ({ ...each, reference: await this.referenceOf(each.id) })),
    )
    const batch = await db
      .selectFrom('payoutBatches')
      .select(['id', 'messageId'])
      .where('rail', '=', this.settings.name)
      .orderBy('id', 'desc')
      .executeTakeFirst()
    return { payments, batchId: batch?.id ?? '', messageId: batch?.messageId ?? '' }
  }

  /** Lets the bank answer with the lines of a file, or its text. */
  answer = async (...lines: string[]) => await this.hear([...lines, 'end'].join('\n'))
  hear = async (text: string) => await this.harness.bankAnswers(this.#bank, text)

  /** Imports a file from the bank without recording its reports. */
  async importText(text: string): Promise<void> {
    this.#bank.answer(text)
    await this.run('read-bank-files')
  }

  open = async () => {
    const all = await exceptions.list(this.harness.db, { state: 'open', take: 100 })
    return all.filter(({ rail }) => rail === this.settings.name).toReversed()
  }

  get = async (id: string, key = this.harness.key) => await this.harness.getWithdrawal(id, key)
  statusesOf = async (payments: { id: string }[]) =>
    await Promise.all(payments.map(async ({ id }) => (await this.get(id)).status as string))
  referenceOf = async (id: string): Promise<string> => {
    const found = await this.harness.db
      .selectFrom('payouts')
      .select('reference')
      .where('withdrawalId', '=', id)
      .executeTakeFirst()
    return found?.reference ?? ''
  }

  /** The available balance of a member, and the amount owed. */
  balanceOf = async (memberId: string) => {
    const { available, owed } = await this.harness.db
      .selectFrom('ledgerBalances')
      .select(['available', 'owed'])
      .where('memberId', '=', memberId)
      .executeTakeFirstOrThrow()
    return { available: Number(available), owed: Number(owed) }
  }

  /** A partner's non-zero account balances in euros: debits less credits. */
  books = async (partnerId = this.harness.partner.id): Promise<Record<string, number>> => {
    const { rows } = await this.harness.pool.query(
      `select account, sum(amount)::integer as balance
         from (select debit as account, amount from ledger_transfers where partner_id = $1 and currency = 'EUR'
                union all
               select credit, -amount from ledger_transfers where partner_id = $1 and currency = 'EUR') sides
        group by account having sum(amount) <> 0`,
      [partnerId],
    )
    return Object.fromEntries(rows.map(({ account, balance }) => [account, balance]))
  }

  disagreements = async () => await this.harness.disagreements()
}
