import type { Logger } from 'pino'
import type { Static, TSchema } from 'typebox'
import type { BankAccount } from '../../bank-accounts/rules.ts'
import type { Db, Reader } from '../../database/database.ts'
import { problem } from '../../kernel/errors.ts'
import type { Currency } from '../../kernel/money.ts'
import type { Clock } from '../../kernel/time.ts'
import type { Mode } from '../../partners/partners.ts'
import type { Banks } from '../../withdrawals/facts.ts'
import type { AutomaticApproval } from '../books/automatic-approval.ts'
import type { FileRailSettings } from '../books/file-rail-settings.ts'
import type { Channel } from './channel.ts'
import type { NotificationReceiver } from './notifications.ts'

/** One rail of the file that MIDMONTH_RAILS names. Everything but its channel is known without a database. */
export type Rail = {
  readonly name: string
  readonly currency: Currency
  /** Limits up to which a batch needs no person. Null: two people approve every batch. */
  readonly automatic: AutomaticApproval | null
  /** What its bank reports besides the outcome of a payment: money that arrives on the account, and payments that came back. */
  readonly reports: { readonly arrivals: boolean; readonly returns: boolean }
  /** What only a rail of files has; null for an API. */
  readonly files: FileRailSettings | null
  /** Until when all payments that an API has made are listed; null if they never were. A rail of files has none. */
  readonly listedUntil?: (db: Reader) => Promise<Date | null>
  /** The format or the API, and how files or news travel. For operators. */
  readonly summary: string
  /** Writes the name of a payee in the characters that the bank takes, cut to its length. */
  payeeName(accountHolder: string): string
  /** Why no payment to an account can be made, as a member reads it; undefined if one can. */
  accountRefusal(account: BankAccount): string | undefined
  /** The account that pays for a partner, for operators. At most its last four characters are shown. */
  payerOf(partnerId: string): string
  /** What keeps the rail from paying, and what an operator should know before it pays. */
  check(): Promise<RailFinding[]>
  /** Opens the receiver of the bank's notifications; null if the bank sends none. */
  readonly openReceiver: ((context: { db: Db; log: Logger; now: Clock }) => Promise<NotificationReceiver>) | null
  openChannel(context: { db: Db; now: Clock }): Promise<Channel>
}

/** A finding for `midmonth doctor`. @property command what to run; null: edit the file that MIDMONTH_RAILS names */
export type RailFinding = { level: 'missing' | 'warning' | 'hint'; sentence: string; command: string | null }

/** How a channel reads its rails from the settings file. */
export type ChannelType = {
  /** Of one rail, with its `type` as a literal. */
  readonly schema: TSchema
  /** What the schema cannot say, a sentence each. */
  faults(given: unknown, mode: Mode): string[]
  configure(given: unknown, mode: Mode): Rail
}

type TypeOf<Schema extends TSchema> = {
  schema: Schema
  faults(given: Static<Schema>, mode: Mode): string[]
  configure(given: Static<Schema>, mode: Mode): Rail
}

/** Declares a channel. Its functions are called only with what its schema accepts. */
export function channelType<Schema extends TSchema>({ schema, faults, configure }: TypeOf<Schema>): ChannelType {
  return {
    schema,
    // The casts hold because readRails validates each rail against the schema of its type.
    faults: (given, mode) => faults(given as Static<Schema>, mode),
    configure: (given, mode) => configure(given as Static<Schema>, mode),
  }
}

/** Which currencies are paid, and which accounts their banks refuse. */
export function banksOn(rails: readonly Rail[], bankOf: (currency: Currency) => string | null): Banks {
  return {
    hasRail: currency => bankOf(currency) !== null,
    accountRefusal: (currency, account) => rails.find(rail => rail.currency === currency)?.accountRefusal(account),
  }
}

export function fileRailsOf(rails: readonly Rail[]): FileRailSettings[] {
  return rails.flatMap(({ files }) => files ?? [])
}

/** @throws Problem `NotFound` */
export function fileRailNamed(rails: readonly Rail[], name: string): FileRailSettings {
  const rail = fileRailsOf(rails).find(each => each.name === name)
  if (rail === undefined) throw problem('NotFound', `There is no rail ${name} that sends files; list the rails`)
  return rail
}
