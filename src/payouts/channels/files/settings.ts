import { type Static, Type } from 'typebox'
import { type BankAccount, check } from '../../../bank-accounts/rules.ts'
import { isGeneratedId } from '../../../kernel/ids.ts'
import { strictObject } from '../../../kernel/schemas.ts'
import { Approval, faultsOfApproval, toAutomatic } from '../../books/automatic-approval.ts'
import type { FileRailSettings } from '../../books/file-rail-settings.ts'
import { type Calendar, withOverride } from '../../calendars/calendar.ts'
import { atOnce, cutOffOf, type LeadTime, leadTimes } from '../../calendars/cut-off.ts'
import { target } from '../../calendars/target.ts'
import { uk } from '../../calendars/uk.ts'
import { AbsolutePath, type Delivery, SftpServer } from '../../delivery/delivery.ts'
import type { Debtor } from '../../formats/bank-files.ts'
import type { FileFormat } from '../../formats/format.ts'
import { sepaFormat, ukFormat } from '../../formats/sepa/format.ts'
import { stateWithoutAdvice } from '../../formats/standard18/entry-day.ts'
import { standard18Format } from '../../formats/standard18/format.ts'
import { ArucsOptions } from '../../formats/standard18/read-arucs.ts'
import { Standard18Options } from '../../formats/standard18/write-standard18.ts'
import { RailName } from '../../payments/rail-name.ts'

const Day = Type.String({ pattern: '^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$' })

const Name = Type.String({ minLength: 1, maxLength: 140 })

const commonFields = {
  name: RailName,
  /** When the day's batch is closed, in the bank's time zone. Earlier than the bank's own cut-off. */
  cutOff: Type.String({ pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$' }),
  timeZone: Type.String({ minLength: 1, maxLength: 60 }),
  /** Days on which the bank is closed besides those of the calendar. */
  closedDays: Type.Optional(Type.Array(Day, { maxItems: 100 })),
  /** How far `closedDays` reaches, if further than the calendar. */
  closedDaysUntil: Type.Optional(Day),
  approval: Approval,
  /** Contains outbox/, inbox/, archive/ and rejected/. Without it, an operator carries the files. */
  folder: Type.Optional(AbsolutePath),
  /** Sends the files of the outbox and fetches those of the inbox. */
  sftp: Type.Optional(SftpServer),
  /** Public keys of age, for which archived files are encrypted. */
  archiveFor: Type.Optional(Type.Array(Type.String({ pattern: '^age1[a-z0-9]{58}$' }), { maxItems: 10 })),
}

const SepaDebtor = strictObject({
  name: Name,
  iban: Type.String({ pattern: '^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$' }),
  bic: Type.Optional(Type.String({ pattern: '^[A-Z0-9]{8}([A-Z0-9]{3})?$' })),
})
const UkDebtor = strictObject({
  name: Name,
  sortCode: Type.String({ pattern: '^[0-9]{6}$' }),
  accountNumber: Type.String({ pattern: '^[0-9]{8}$' }),
})

const Countries = Type.Array(Type.String({ pattern: '^[A-Z]{2}$' }), { maxItems: 100 })

export const SepaFileRail = strictObject({
  ...commonFields,
  type: Type.Literal('sepa-file'),
  currency: Type.Literal('EUR'),
  /** The accounts that pay, by partner id. The account `default` pays for all other partners. */
  debtors: Type.Object({ default: SepaDebtor }, { additionalProperties: SepaDebtor }),
  instant: Type.Optional(Type.Boolean()),
  batchBooking: Type.Optional(Type.Boolean()),
  /** Payments are marked as salaries. */
  categoryPurpose: Type.Optional(Type.Literal('SALA')),
  /** Changes to the list of SEPA countries. */
  countries: Type.Optional(strictObject({ add: Type.Optional(Countries), remove: Type.Optional(Countries) })),
})

export const Standard18FileRail = strictObject({
  ...commonFields,
  type: Type.Literal('standard18-file'),
  currency: Type.Literal('GBP'),
  ...Standard18Options.properties,
  debtors: Type.Object({ default: UkDebtor }, { additionalProperties: UkDebtor }),
  returns: Type.Optional(ArucsOptions),
})

export const UkPain001FileRail = strictObject({
  ...commonFields,
  type: Type.Literal('uk-pain001-file'),
  currency: Type.Literal('GBP'),
  debtors: Type.Object({ default: UkDebtor }, { additionalProperties: UkDebtor }),
  /** Faster Payments instead of Bacs. */
  instant: Type.Optional(Type.Boolean()),
  batchBooking: Type.Optional(Type.Boolean()),
})

type SepaFileRail = Static<typeof SepaFileRail>
type Standard18FileRail = Static<typeof Standard18FileRail>
type UkPain001FileRail = Static<typeof UkPain001FileRail>
export type GivenFileRail = SepaFileRail | Standard18FileRail | UkPain001FileRail

/** What the schemas cannot say, a sentence each. */
export function faultsOf({ name, timeZone, debtors, approval, folder, sftp }: GivenFileRail): string[] {
  return [
    ...(isTimeZone(timeZone) ? [] : [`${name}: timeZone must be an IANA name, such as Europe/Berlin`]),
    ...Object.entries(debtors).flatMap(([owner, debtor]) => [
      ...(owner === 'default' || isGeneratedId(owner) ? [] : [`${name}: the debtor ${owner} is not a partner id`]),
      ...(check(accountOf(debtor)) === 'invalid' ? [`${name}: the account of the debtor ${owner} is wrong`] : []),
    ]),
    ...faultsOfApproval(name, approval),
    ...(sftp !== undefined && folder === undefined ? [`${name}: sftp needs a folder for files on their way`] : []),
    ...(sftp !== undefined && (sftp.privateKeyFile === undefined) === (sftp.passwordFile === undefined)
      ? [`${name}: sftp needs either privateKeyFile or passwordFile`]
      : []),
  ]
}

type GivenDebtor = Static<typeof SepaDebtor> | Static<typeof UkDebtor>

function accountOf(debtor: GivenDebtor): BankAccount {
  if ('iban' in debtor) return { accountHolder: debtor.name, iban: debtor.iban }
  return { accountHolder: debtor.name, sortCode: debtor.sortCode, accountNumber: debtor.accountNumber }
}

function isTimeZone(timeZone: string): boolean {
  try {
    return Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

export function toSettings(given: GivenFileRail): FileRailSettings {
  const { name, currency, debtors, timeZone, cutOff, approval } = given
  return {
    ...{ name, currency, timeZone, cutOff },
    ...settingsOfType(given),
    debtors: {
      ...Object.fromEntries(Object.entries(debtors).map(([owner, debtor]) => [owner, toDebtor(debtor)])),
      default: toDebtor(debtors.default),
    },
    automatic: toAutomatic(approval),
    delivery: deliveryOf(given),
  }
}

type OfType = Pick<FileRailSettings, 'format' | 'isInstant' | 'canBeInstant' | 'calendar' | 'schedule' | 'countsAsPaid'>

function settingsOfType(given: GivenFileRail): OfType {
  switch (given.type) {
    case 'sepa-file':
      return pain001Settings(given, {
        format: options =>
          sepaFormat({ ...options, countries: given.countries, isSalary: given.categoryPurpose === 'SALA' }),
        bankingDays: target,
        leadTime: leadTimes['sepa-credit-transfer'],
      })
    case 'standard18-file':
      return standard18Settings(given)
    case 'uk-pain001-file':
      return pain001Settings(given, { format: ukFormat, bankingDays: uk, leadTime: leadTimes.bacs })
    default:
      return given satisfies never
  }
}

type Pain001Scheme = {
  format: (options: { isBatchBooked: boolean | undefined }) => FileFormat
  bankingDays: Calendar
  leadTime: LeadTime
}

function pain001Settings(
  { cutOff, timeZone, closedDays, closedDaysUntil, instant = false, batchBooking }: SepaFileRail | UkPain001FileRail,
  { format, bankingDays, leadTime }: Pain001Scheme,
): OfType {
  const calendar = withOverride(bankingDays, { closedDays, validUntil: closedDaysUntil })
  return {
    format: format({ isBatchBooked: batchBooking }),
    isInstant: instant,
    canBeInstant: true,
    calendar,
    schedule: (now, isInstant = instant) =>
      isInstant ? atOnce({ now, timeZone }) : cutOffOf({ now, cutOff, timeZone, calendar, ...leadTime }),
    countsAsPaid: null,
  }
}

function standard18Settings(given: Standard18FileRail): OfType {
  const { cutOff, timeZone, closedDays, closedDaysUntil, scheme, returns = null } = given
  const calendar = withOverride(uk, { closedDays, validUntil: closedDaysUntil })
  return {
    format: standard18Format(given, returns),
    isInstant: false,
    canBeInstant: false,
    calendar,
    schedule: now => cutOffOf({ now, cutOff, timeZone, calendar, ...leadTimes[scheme] }),
    countsAsPaid: (valueDate, today) => stateWithoutAdvice(scheme, valueDate, { today, calendar }) === 'paid',
  }
}

function toDebtor(debtor: GivenDebtor): Debtor {
  return { name: debtor.name, account: accountOf(debtor), bic: 'bic' in debtor ? debtor.bic : undefined }
}

/** Opens on first use: an API process reads the settings too, and needs neither folder nor server. */
function deliveryOf({ folder, sftp, archiveFor: recipients }: GivenFileRail): FileRailSettings['delivery'] {
  if (folder === undefined) return null
  let opened: Promise<Delivery> | undefined
  const open = async (): Promise<Delivery> => {
    if (sftp === undefined)
      return await (await import('../../delivery/folder.ts')).FolderDelivery.open({ folder, recipients })
    return await (await import('../../delivery/sftp.ts')).SftpDelivery.open({ folder, recipients, ...sftp })
  }
  return async () => {
    opened ??= open()
    try {
      return await opened
    } catch (error) {
      opened = undefined
      throw error
    }
  }
}
