import { inWords } from '../kernel/money.ts'
import { countOf } from '../kernel/text.ts'
import { dayIn } from '../kernel/time.ts'
import { daysLeft } from '../payouts/calendars/calendar.ts'
import { fileRailsOf } from '../payouts/channels/rail.ts'
import { type Check, edit, hint, missing, railsOf, type SettingsFacts, warning } from './finding.ts'

const limits = {
  // A new version with the next list of bank holidays can be planned, tested and installed in a quarter.
  calendarDaysMin: 90,
}

/** The mode and the rails. */
export const settingChecks: readonly Check<SettingsFacts>[] = [
  {
    name: 'mode',
    find: ({ mode }) =>
      mode === 'live'
        ? null
        : missing({
            sentence:
              'MIDMONTH_MODE is sandbox; live mode needs a separate database, because a database keeps its mode',
            command: 'export MIDMONTH_MODE=live DATABASE_URL=postgres://midmonth_app:PASSWORD@HOST/NEW_DATABASE',
          }),
    fine: () => 'MIDMONTH_MODE is live',
  },
  {
    name: 'TLS',
    find: ({ publicUrl }) => {
      const command = 'export MIDMONTH_PUBLIC_URL=https://HOST'
      if (publicUrl.startsWith('https://')) return null
      if (publicUrl === '')
        return missing({
          sentence: 'MIDMONTH_PUBLIC_URL is not set; a live service does not start without it',
          command,
        })
      const sentence = `MIDMONTH_PUBLIC_URL is ${publicUrl}, without TLS: passwords and API keys can be read on the way`
      return warning({ sentence, command })
    },
    fine: ({ publicUrl }) => `People and partners reach the service at ${publicUrl}`,
  },
  {
    name: 'rails',
    find: ({ railsFile, rails }) => {
      if (railsFile === '')
        return missing({
          sentence: 'No bank is connected: MIDMONTH_RAILS names no file; see docs/guides/go-live.md',
          command: 'export MIDMONTH_RAILS=/etc/midmonth/rails.json',
        })
      return typeof rails === 'string' ? missing({ sentence: rails, command: edit(railsFile) }) : null
    },
    fine: facts =>
      railsOf(facts)
        .map(({ name, currency, summary }) => `${currency} by ${name} (${summary})`)
        .join('; '),
  },
  {
    name: 'calendars',
    find: ({ now, ...facts }) =>
      fileRailsOf(railsOf(facts)).flatMap(({ name, calendar, timeZone }) => {
        if (calendar === null) return null
        const left = daysLeft(calendar, dayIn(timeZone, now))
        const command = 'git pull && npm install --omit=dev'
        const ends = `the ${calendar.name} calendar of the rail ${name}`
        if (left < 0)
          return missing({
            sentence: `${capitalised(ends)} ended on ${calendar.validUntil}: update Midmonth, or set closedDaysUntil`,
            command,
          })
        if (left >= limits.calendarDaysMin) return null
        const sentence = `${capitalised(ends)} ends on ${calendar.validUntil}, in ${countOf(left, 'day')}: update Midmonth, or set closedDaysUntil`
        return warning({ sentence, command })
      }),
    fine: facts => {
      const ends = fileRailsOf(railsOf(facts)).flatMap(({ name, calendar }) =>
        calendar === null ? [] : [`the rail ${name} knows the banking days until ${calendar.validUntil}`],
      )
      return ends.length === 0 ? 'No rail needs banking days' : capitalised(ends.join('; '))
    },
  },
  {
    name: 'bank API',
    find: ({ railsFile, ...facts }) =>
      railsOf(facts).flatMap(({ findings }) =>
        findings.map(({ command, ...found }) => ({ ...found, command: command ?? edit(railsFile) })),
      ),
    fine: () => 'No rail uses an API',
  },
  {
    name: 'returns',
    find: ({ railsFile, ...facts }) =>
      railsOf(facts)
        .filter(({ reports }) => !reports.returns)
        .map(({ name }) =>
          warning({
            sentence: `The rail ${name} has no setting returns, so a payment that comes back stays paid, and the member does not get the money again`,
            command: edit(railsFile),
          }),
        ),
    fine: () => 'Every rail reads which payments came back',
  },
  {
    name: 'approval',
    find: facts =>
      railsOf(facts)
        .filter(({ automatic }) => automatic === null)
        .map(({ name }) =>
          hint({
            sentence: `The rail ${name} has no limits for automatic approval, so two people approve every batch`,
            command: 'midmonth payouts approve BATCH --as PERSON',
          }),
        ),
    fine: facts =>
      railsOf(facts)
        .flatMap(({ name, currency, automatic }) =>
          automatic === null
            ? []
            : [`Batches of ${name} up to ${inWords({ amount: automatic.batchMax, currency })} need no person`],
        )
        .join('; ') || 'No rail needs it',
  },
]

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
