import type { PayCycle, PayRun } from '@midmonth/sdk'
import { useLocation } from 'preact-iso'
import { dayIn } from '../days.ts'
import { formatDay, formatShortDay, inWords, plural } from '../format.ts'
import { at, hrefOfId } from '../places.ts'
import { timeZone } from '../session.ts'
import { Icon } from './icon.tsx'

const locale = navigator.languages as string[]
const formats = {
  month: new Intl.DateTimeFormat(locale, { month: 'long', year: 'numeric', timeZone: 'UTC' }),
  weekday: new Intl.DateTimeFormat(locale, { weekday: 'short', timeZone: 'UTC' }),
  weekdayLong: new Intl.DateTimeFormat(locale, { weekday: 'long', timeZone: 'UTC' }),
}

type CycleCalendarProps = {
  month: string
  today: string
  cycles: PayCycle[]
  payRuns: PayRun[]
  hrefOfMonth: (month: string) => string
}

/**
 * Shows a month with its pay cycles as bars, and the days on which pay became available.
 * @param props.month such as '2026-03'
 * @param props.hrefOfMonth the address of this page for another month
 */
export function CycleCalendar({ month, today, cycles, payRuns, hrefOfMonth }: CycleCalendarProps) {
  const { route } = useLocation()
  const weeks = weeksOf(month)
  const runsByDay = Map.groupBy(payRuns, ({ scheduledFor }) => dayIn(timeZone.value, new Date(scheduledFor)))
  const onKey = (event: KeyboardEvent) => {
    const to = { PageUp: -1, PageDown: 1 }[event.key]
    if (to !== undefined) {
      event.preventDefault()
      route(hrefOfMonth(addMonths(month, to)), true)
    } else moveByKey(event)
  }
  return (
    <section class="calendar" aria-label="Calendar of pay cycles">
      <header class="calendar-head row">
        <h2 aria-live="polite">{formats.month.format(dateOf(`${month}-01`))}</h2>
        <a
          class="icon-button"
          href={hrefOfMonth(addMonths(month, -1))}
          aria-label="Earlier month"
          title="Earlier (Page up)"
        >
          <Icon name="back" />
        </a>
        <a
          class="icon-button"
          href={hrefOfMonth(addMonths(month, 1))}
          aria-label="Later month"
          title="Later (Page down)"
        >
          <Icon name="forward" />
        </a>
        {month !== today.slice(0, 7) && (
          <a class="text-button" href={hrefOfMonth(today.slice(0, 7))}>
            This month
          </a>
        )}
      </header>
      <table onKeyDown={onKey}>
        <thead>
          <tr>
            {weeks[0]?.map(day => (
              <th key={day} scope="col">
                <abbr title={formats.weekdayLong.format(dateOf(day))}>{formats.weekday.format(dateOf(day))}</abbr>
              </th>
            ))}
          </tr>
        </thead>
        {weeks.map(week => (
          <tbody key={week[0]}>
            <tr class="calendar-days">
              {week.map(day => (
                <td key={day} class={day.startsWith(month) ? undefined : 'calendar-outside'}>
                  <time dateTime={day} class={day === today ? 'calendar-today' : undefined}>
                    {Number(day.slice(8))}
                  </time>
                  <PayRunsOfDay day={day} payRuns={runsByDay.get(day) ?? []} />
                </td>
              ))}
            </tr>
            <tr class="calendar-bars">
              {barsOf(week, cycles).map(({ from, days, cycle }) => (
                <td key={from} colSpan={days}>
                  {cycle && (
                    <Bar cycle={cycle} from={from} until={week[6] ?? ''} isFirst={from === firstShown(cycle, weeks)} />
                  )}
                </td>
              ))}
            </tr>
          </tbody>
        ))}
      </table>
    </section>
  )
}

/** The part of a cycle that falls in one week. Only the first part takes the focus, so that Tab moves from cycle to cycle. */
function Bar({ cycle, from, until, isFirst }: { cycle: PayCycle; from: string; until: string; isFirst: boolean }) {
  const { id, startDate, endDate, status } = cycle
  const ends = `${startDate < from ? ' calendar-continued' : ''}${endDate > until ? ' calendar-continues' : ''}`
  return (
    <a
      class={`calendar-bar tone-${status === 'Open' ? 'flow' : 'calm'}${ends}`}
      href={hrefOfId(id)}
      tabIndex={isFirst ? undefined : -1}
    >
      <span class="hidden-label">
        {formatDay(startDate)} to {formatDay(endDate)},
      </span>
      <span class={isFirst ? undefined : 'hidden-label'}>{inWords(status)}</span>
      {endDate <= until && (
        <span class="calendar-end">
          <span class="calendar-ends">ends </span>
          {formatShortDay(endDate)}
        </span>
      )}
    </a>
  )
}

function PayRunsOfDay({ day, payRuns }: { day: string; payRuns: PayRun[] }) {
  const [only] = payRuns
  if (only === undefined) return null
  const href = payRuns.length === 1 ? hrefOfId(only.id) : at('pay-runs')
  const label = `${plural(payRuns.length, 'pay run')} on ${formatDay(day)}`
  return (
    <a class="calendar-pay" href={href} title={label}>
      <span class="hidden-label">{label}</span>
    </a>
  )
}

/** The cells of a week: the cycles, and the days without a cycle. */
function barsOf(week: string[], cycles: PayCycle[]): { from: string; days: number; cycle: PayCycle | undefined }[] {
  const bars: { from: string; days: number; cycle: PayCycle | undefined }[] = []
  for (const day of week) {
    const cycle = cycles.find(({ startDate, endDate }) => startDate <= day && day <= endDate)
    const last = bars.at(-1)
    if (last !== undefined && last.cycle === cycle) last.days += 1
    else bars.push({ from: day, days: 1, cycle })
  }
  return bars
}

function firstShown({ startDate }: PayCycle, weeks: string[][]): string {
  const first = weeks[0]?.[0] ?? ''
  return startDate < first ? first : startDate
}

/** Moves from cycle to cycle, as in a list. */
function moveByKey(event: KeyboardEvent): void {
  const to = { j: 1, ArrowRight: 1, ArrowDown: 1, k: -1, ArrowLeft: -1, ArrowUp: -1 }[event.key]
  if (to === undefined || !(event.currentTarget instanceof HTMLElement)) return
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>('.calendar-bar:not([tabindex])')]
  const next = links[links.indexOf(event.target as HTMLElement) + to]
  if (next === undefined) return
  event.preventDefault()
  next.focus()
}

function weeksOf(month: string): string[][] {
  const first = dateOf(`${month}-01`)
  const offset = (first.getUTCDay() - firstWeekday() + 7) % 7
  const daysInMonth = Number(addDays(`${addMonths(month, 1)}-01`, -1).slice(8))
  return Array.from({ length: Math.ceil((offset + daysInMonth) / 7) }, (_, week) =>
    Array.from({ length: 7 }, (_, day) => addDays(`${month}-01`, week * 7 + day - offset)),
  )
}

/** 0 is Sunday. Defaults to Monday if the browser does not know the first day of the reader's week. */
function firstWeekday(): number {
  type WithWeek = Intl.Locale & { getWeekInfo?: () => { firstDay: number } }
  const reader: WithWeek = new Intl.Locale(locale[0] ?? 'en-GB')
  return (reader.getWeekInfo?.().firstDay ?? 1) % 7
}

const dateOf = (day: string): Date => new Date(`${day}T00:00:00Z`)

function addDays(day: string, count: number): string {
  return new Date(dateOf(day).getTime() + count * 86_400_000).toISOString().slice(0, 10)
}

function addMonths(month: string, count: number): string {
  const date = dateOf(`${month}-01`)
  date.setUTCMonth(date.getUTCMonth() + count)
  return date.toISOString().slice(0, 7)
}
