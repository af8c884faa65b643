import { format, type Money, toDecimal } from '@midmonth/sdk'

const locale = navigator.languages as string[]

export function formatMoney(money: Money): string {
  return format(money, locale)
}

/** Omits the decimals if they are all zero. For the figures on an axis. */
export function formatWholeMoney(money: Money): string {
  const isWhole = /\.0+$/.test(toDecimal(money))
  // Only the last zeros: earlier ones may follow a thousands separator.
  return isWhole ? formatMoney(money).replace(/[.,]0+(?=\D*$)/, '') : formatMoney(money)
}

// Created on first use: creating the first one takes 40 ms, which would delay the page's requests.
const formats = {
  day: lazily(() => dates({ day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' })),
  shortDay: lazily(() => dates({ day: 'numeric', month: 'short', timeZone: 'UTC' })),
  moment: lazily(() => dates({ day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' })),
  momentWithYear: lazily(() =>
    dates({ day: 'numeric', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit' }),
  ),
  whole: lazily(() => dates({ dateStyle: 'full', timeStyle: 'long' })),
  number: lazily(() => new Intl.NumberFormat(locale)),
}

function dates(options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat(locale, options)
}

function lazily<T>(make: () => T): () => T {
  let value: T | undefined
  return () => {
    value ??= make()
    return value
  }
}

/** Creates the formats that nearly every page needs, while the page waits for its first response. */
export function prepareFormats(): void {
  formats.moment()
  formats.number()
}

/** Formats a calendar day such as '2026-03-31', which has no time zone. */
export const formatDay = (day: string): string => formats.day().format(new Date(`${day}T00:00:00Z`))
export const formatShortDay = (day: string): string => formats.shortDay().format(new Date(`${day}T00:00:00Z`))
export const formatWhole = (instant: string): string => formats.whole().format(new Date(instant))
export const formatNumber = (count: number): string => formats.number().format(count)

/** Formats an instant in the reader's time zone, with the year unless it is the current one. */
export function formatMoment(instant: string): string {
  const date = new Date(instant)
  const { moment, momentWithYear } = formats
  return (date.getFullYear() === new Date().getFullYear() ? moment() : momentWithYear()).format(date)
}

/** Formats an instant in a bank's time zone. */
export function formatInZone(instant: string, timeZone: string): string {
  return dates({ day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', timeZone }).format(
    new Date(instant),
  )
}

/** Turns `held` into "Held" and `AwaitingReview` into "Awaiting review". */
export function inWords(state: string): string {
  // Currencies stay in capitals.
  if (/^[A-Z]+$/.test(state)) return state
  const words = state
    .replaceAll(/[_.]/g, ' ')
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .replace(/\bapi\b/, 'API')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${formatNumber(count)} ${count === 1 ? one : many}`
}
