import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import { type Static, Type } from 'typebox'
import { check } from '../../bank-accounts/rules.ts'
import { SettingsProblem } from '../../config.ts'
import { isGeneratedId } from '../../ids.ts'
import { amountMax } from '../../money.ts'
import { withOverride } from './calendars/calendar.ts'
import { atOnce, cutOffOf, leadTimes } from './calendars/cut-off.ts'
import { target } from './calendars/target.ts'
import type { FileRailSettings } from './file/format.ts'
import { sepaFormat } from './sepa/format.ts'

const strict = { additionalProperties: false }
const Day = Type.String({ pattern: '^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$' })
const Amount = Type.Integer({ minimum: 0, maximum: amountMax })

const Debtor = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 140 }),
    iban: Type.String({ pattern: '^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$' }),
    bic: Type.Optional(Type.String({ pattern: '^[A-Z0-9]{8}([A-Z0-9]{3})?$' })),
  },
  strict,
)

const SepaFileRail = Type.Object(
  {
    /** What payouts are recorded under; never reuse it for another bank. */
    name: Type.String({ pattern: '^[a-z][a-z0-9-]{0,29}$' }),
    type: Type.Literal('sepa-file'),
    currency: Type.Literal('EUR'),
    /** The accounts that pay, by partner id; `default` pays for all others. */
    debtors: Type.Object({ default: Debtor }, { additionalProperties: Debtor }),
    /** In the bank's time zone: when the file must be with the bank. */
    cutOff: Type.String({ pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$' }),
    timeZone: Type.String({ minLength: 1, maxLength: 60 }),
    instant: Type.Optional(Type.Boolean()),
    batchBooking: Type.Optional(Type.Boolean()),
    /** Days on which the bank is closed besides those of TARGET. */
    closedDays: Type.Optional(Type.Array(Day, { maxItems: 100 })),
    approval: Type.Optional(
      Type.Object(
        {
          automatic: Type.Object({ paymentMax: Amount, batchMax: Amount, dayMax: Amount }, strict),
        },
        strict,
      ),
    ),
  },
  strict,
)
type SepaFileRail = Static<typeof SepaFileRail>

const RailsFile = Type.Object({ rails: Type.Array(SepaFileRail, { minItems: 1, maxItems: 20 }) }, strict)

// Unlike the validator of requests it goes on after the first fault, so that an operator can correct all of them at once.
const validate = new Ajv({ allErrors: true }).compile<Static<typeof RailsFile>>(RailsFile)

/**
 * Reads the rails from the file that OPENWAGE_RAILS names.
 * @throws SettingsProblem that names every fault
 */
export function readRails(file: string): FileRailSettings[] {
  const faults = (all: string[]): never => {
    throw new SettingsProblem(`OPENWAGE_RAILS (${file}): ${all.join('; ')}`)
  }
  let given: unknown
  try {
    given = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    return faults([`cannot be read as JSON: ${error instanceof Error ? error.message : error}`])
  }
  if (!validate(given)) {
    return faults(
      (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath || 'the file'} ${message}`),
    )
  }
  const { rails } = given
  const found = [...rails.flatMap(faultsOf), ...repeated(rails, 'name'), ...repeated(rails, 'currency')]
  if (found.length > 0) return faults(found)
  return rails.map(toSettings)
}

function faultsOf({ name, timeZone, debtors, approval }: SepaFileRail): string[] {
  const { automatic } = approval ?? {}
  return [
    ...(isTimeZone(timeZone) ? [] : [`${name}: timeZone must be an IANA name, such as Europe/Berlin`]),
    ...Object.entries(debtors).flatMap(([owner, { iban }]) => [
      ...(owner === 'default' || isGeneratedId(owner) ? [] : [`${name}: the debtor ${owner} is no partner id`]),
      ...(check({ accountHolder: '', iban }) === 'valid' ? [] : [`${name}: the IBAN of the debtor ${owner} is wrong`]),
    ]),
    ...(automatic !== undefined && (automatic.paymentMax > automatic.batchMax || automatic.batchMax > automatic.dayMax)
      ? [`${name}: paymentMax must not exceed batchMax, nor batchMax dayMax`]
      : []),
  ]
}

function repeated(rails: SepaFileRail[], field: 'name' | 'currency'): string[] {
  const values = rails.map(each => each[field])
  const twice = new Set(values.filter((value, index) => values.indexOf(value) !== index))
  return [...twice].map(value => `two rails have the ${field} ${value}`)
}

function isTimeZone(timeZone: string): boolean {
  try {
    return Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

function toSettings(given: SepaFileRail): FileRailSettings {
  const { name, currency, debtors, cutOff, timeZone, instant = false, batchBooking, closedDays, approval } = given
  const calendar = withOverride(target, { closedDays })
  const toDebtor = ({ name: holder, iban, bic }: Static<typeof Debtor>) => ({
    name: holder,
    account: { accountHolder: holder, iban },
    bic,
  })
  const automatic = approval?.automatic
  return {
    name,
    currency,
    format: sepaFormat({ isBatchBooked: batchBooking }),
    debtors: {
      ...Object.fromEntries(Object.entries(debtors).map(([owner, debtor]) => [owner, toDebtor(debtor)])),
      default: toDebtor(debtors.default),
    },
    isInstant: instant,
    timeZone,
    schedule: now =>
      instant
        ? atOnce({ now, timeZone })
        : cutOffOf({ now, cutOff, timeZone, calendar, ...leadTimes['sepa-credit-transfer'] }),
    automatic:
      automatic === undefined
        ? null
        : {
            paymentMax: BigInt(automatic.paymentMax),
            batchMax: BigInt(automatic.batchMax),
            dayMax: BigInt(automatic.dayMax),
          },
    delivery: null,
  }
}
