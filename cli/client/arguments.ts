import { InvalidArgumentError } from 'commander'
import type { Currency, Member, MemberId, Money } from '../../packages/sdk/src/generated/schemas.ts'
import type { Midmonth } from '../../packages/sdk/src/midmonth.ts'
import { money, toDecimal } from '../../packages/sdk/src/money.ts'
import { WrongUsage } from './failure.ts'
import { fileToUpload, readInput } from './files.ts'

/** Parses an id by its prefix. The service checks whether the resource exists. */
export function idOf<Prefix extends string>(prefix: Prefix): (text: string) => `${Prefix}_${string}` {
  return text => {
    if (!hasPrefix(text, prefix) || !/^[a-z]+_[0-9a-z]{26}$/.test(text))
      throw new InvalidArgumentError(`Use an id such as ${prefix}_01kah4pzc5e4r8v2m6t0x9y3bd.`)
    return text
  }
}

function hasPrefix<Prefix extends string>(text: string, prefix: Prefix): text is `${Prefix}_${string}` {
  return text.startsWith(`${prefix}_`)
}

/** Parses the id or the e-mail of a member. */
export function memberArgument(text: string): string {
  return text.includes('@') ? text : idOf('mem')(text)
}

/**
 * Returns the id of the member that the argument names. An e-mail means the member who has it now, or else the only member who had it.
 * @throws Error if there is no such member, or if several offboarded members had the e-mail
 */
export async function memberOf(midmonth: Midmonth, given: string): Promise<MemberId> {
  if (hasPrefix(given, 'mem')) return given
  const { members } = await midmonth.members.list({ emails: [given], take: 1_000 })
  const current = members.find(({ status }) => status !== 'inactive')
  const [found, another] = current === undefined ? members : [current]
  if (found === undefined) throw new Error(`There is no member with the e-mail ${given}`)
  if (another !== undefined) throw new Error(`Several offboarded members had the e-mail ${given}; use an id`)
  return found.memberId
}

/** Parses an amount in major units, as far as that is possible without its currency. */
export function amountArgument(text: string): string {
  if (!/^\d{1,15}(\.\d{1,4})?$/.test(text)) throw new InvalidArgumentError('Use an amount such as 50.00.')
  return text
}

/**
 * An amount in major units with all its decimals. Without them, `5000` could be meant as 50.00 by someone who is used to the API's
 * minor units.
 */
export function amountOf(text: string, currency: Currency): Money {
  const example = toDecimal({ amount: 5_000, currency })
  const wrong = new WrongUsage(`Write the amount in ${currency} with all its decimals, for example ${example}`)
  try {
    const amount = money(text, currency)
    if (toDecimal(amount) === text) return amount
  } catch (error) {
    throw new WrongUsage(wrong.message, { cause: error })
  }
  throw wrong
}

/** An amount for people: `50.00 GBP`. */
export function inWords(amount: Money): string {
  return `${toDecimal(amount)} ${amount.currency}`
}

/** The end of an account number. Only `--json` shows whole numbers: others can see a screen. */
export function accountOf(account: NonNullable<Member['accountDetails']>): string {
  return `…${('iban' in account ? account.iban : account.accountNumber).slice(-4)}`
}

/** Reads a JSON object from a file, or from standard input if it is `-`. @throws WrongUsage */
export async function readJson(option: string, file: string): Promise<object> {
  const text = await (file === '-' ? await readInput() : await fileToUpload(file)).text()
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch (error) {
    throw new WrongUsage(`${option} is not JSON: ${error instanceof Error ? error.message : error}`)
  }
  throw new WrongUsage(`${option} must be a JSON object`)
}
