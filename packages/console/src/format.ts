import { format, type Money, toDecimal } from '@midmonth/sdk'

const locale = navigator.languages as string[]

export function formatMoney(money: Money): string {
  return format(money, locale)
}

/** Without decimals if it has none to show: the figures of an axis. */
export function formatWholeMoney(money: Money): string {
  const isWhole = /\.0+$/.test(toDecimal(money))
  // The last zeros: earlier ones may follow a separator of thousands.
  return isWhole ? formatMoney(money).replace(/[.,]0+(?=\D*$)/, '') : formatMoney(money)
}

// Made at their first use: the first one of a page takes 40 ms, in which its requests can be on their way already.
const formats = {
  day: once(() => dates({ day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' })),
  shortDay: once(() => dates({ day: 'numeric', month: 'short', timeZone: 'UTC' })),
  moment: once(() => dates({ day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' })),
  momentWithYear: once(() =>
    dates({ day: 'numeric', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit' }),
  ),
  whole: once(() => dates({ dateStyle: 'full', timeStyle: 'long' })),
  number: once(() => new Intl.NumberFormat(locale)),
}

function dates(options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat(locale, options)
}

function once<T>(make: () => T): () => T {
  let made: T | undefined
  return () => {
    made ??= make()
    return made
  }
}

/** Makes what nearly every page needs, while it waits for its first answer. */
export function prepareFormats(): void {
  formats.moment()
  formats.number()
}

/** A calendar day such as '2026-03-31', which has no zone. */
export const formatDay = (day: string): string => formats.day().format(new Date(`${day}T00:00:00Z`))
export const formatShortDay = (day: string): string => formats.shortDay().format(new Date(`${day}T00:00:00Z`))
export const formatWhole = (instant: string): string => formats.whole().format(new Date(instant))
export const formatNumber = (count: number): string => formats.number().format(count)

/** In the reader's zone; the year only if it is another one. */
export function formatMoment(instant: string): string {
  const date = new Date(instant)
  const { moment, momentWithYear } = formats
  return (date.getFullYear() === new Date().getFullYear() ? moment() : momentWithYear()).format(date)
}

/** In the zone of a bank. */
export function formatInZone(instant: string, timeZone: string): string {
  return dates({ day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', timeZone }).format(
    new Date(instant),
  )
}

/** `held` is "Held", `AwaitingReview` "Awaiting review". */
export function inWords(state: string): string {
  // A currency.
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
