import { InvalidArgumentError, Option } from 'commander'
import type { Partner, PartnerId } from '../packages/console/src/generated/operator.ts'
import { type Setting, settings } from '../src/partners/settings.ts'
import { stopInWords } from '../src/partners/stops.ts'
import { day, name, whole } from './arguments.ts'
import { inTable } from './float-table.ts'
import { movePartnerCommand } from './move-partner.ts'
import { addServerOptions, allOf, OperatorCommand, withOperators } from './operator-client.ts'
import { takeMax } from './paging.ts'
import { printResult, sheet, table } from './print.ts'

const placeholders = { text: 'text', country: 'code', zone: 'zone', day: 'day', number: 'n', choice: 'name' }

const operations = () => import('../src/operators/partner-operations.ts')

export const partnerCommand = new OperatorCommand('partner', operations).description(
  'Manage partners: employers, gig platforms, payroll bureaus.',
)

const createCommand = partnerCommand
  .command('create')
  .description('Create a partner with an open pay cycle. Next, add its tiers (tier set) and an API key (key create).')
  .argument('<name>', 'display name, for example "Acme Couriers"', name({ lengthMax: 140 }))
  .examples('partner create "Acme Couriers" --cycle-schedule weekly --cycle-anchor 2026-01-05')
  .action(async (partnerName: string, { json, url, key, ...settings }) => {
    const partner = await withOperators({ url, key }, operations, api =>
      api.createPartner({ name: partnerName, settings }),
    )
    printResult({ json }, { value: partner, text: () => table([{ id: partner.id, name: partner.name }]) })
  })

partnerCommand
  .command('list')
  .description('List all partners, newest first.')
  .examples('partner list')
  .prints(
    api => allOf(api.listPartners({ take: takeMax })),
    partners =>
      table(
        partners.map(({ id, name, country, timeZone, state }) => ({
          id,
          name,
          country,
          'time zone': timeZone,
          state,
        })),
      ),
  )

partnerCommand
  .command('show')
  .description('Show a partner’s state, settings, open pay cycle, float, and numbers of keys and members.')
  .argument('<partner>', 'the partner’s id, par_…')
  .examples('partner show par_…')
  .prints(
    (api, partnerId: PartnerId) => api.getPartner(partnerId),
    result => inWords(result),
  )

const setCommand = partnerCommand
  .command('set')
  .description(
    'Change a partner’s settings. Options that you leave out do not change. A change applies to what starts afterwards, for example to the next pay cycle.',
  )
  .argument('<partner>', 'the partner’s id, par_…')
  .examples('partner set par_… --grace-minutes 30 --auto-activate')
  .action(async (partnerId: PartnerId, { json, url, key, ...settings }) => {
    if (Object.keys(settings).length === 0) setCommand.error('error: specify at least one setting to change')
    const { before, after } = await withOperators({ url, key }, operations, async api => ({
      before: await api.getPartner(partnerId),
      after: await api.updatePartner(partnerId, settings),
    }))
    printResult({ json }, { value: after, text: () => changesInWords(before, after) })
  })

// Both commands have the same options: create uses defaults for omitted options, set keeps the current values.
for (const [name, setting] of Object.entries<Setting>(settings))
  for (const command of [createCommand, setCommand])
    for (const option of optionsOf(name, setting, { hasDefault: command === createCommand })) command.addOption(option)

for (const { verb, description, isDone, done, unchanged } of [
  {
    verb: 'pause',
    description: 'Stop all members from withdrawing. Pay runs and payouts continue.',
    isDone: ({ paused }: Partner) => paused !== null,
    done: 'is paused',
    unchanged: 'is already paused',
  },
  {
    verb: 'resume',
    description: 'Let members of a paused partner withdraw again.',
    isDone: ({ paused }: Partner) => paused === null,
    done: 'is no longer paused',
    unchanged: 'is not paused',
  },
  {
    verb: 'suspend',
    description: 'Reject all API requests of the partner.',
    isDone: ({ suspended }: Partner) => suspended !== null,
    done: 'is suspended',
    unchanged: 'is already suspended',
  },
  {
    verb: 'restore',
    description: 'Lift a suspension: accept API requests of the partner again.',
    isDone: ({ suspended }: Partner) => suspended === null,
    done: 'is no longer suspended',
    unchanged: 'is not suspended',
  },
] as const) {
  partnerCommand
    .command(verb)
    .description(description)
    .argument('<partner>', 'the partner’s id, par_…')
    .option('--reason <text>', 'reason for the audit log; must not contain personal data', name({ lengthMax: 200 }))
    .examples(`partner ${verb} par_… --reason "bank outage"`)
    .action(async (partnerId: PartnerId, { reason, ...options }) => {
      const { before, after } = await withOperators(options, operations, async api => ({
        before: await api.getPartner(partnerId),
        after: await api[`${verb}Partner`](partnerId, { reason }),
      }))
      const text = () => `${after.name} ${isDone(before) ? unchanged : done}.`
      printResult(options, { value: after, text })
    })
}

addServerOptions(partnerCommand)

// Works on the database itself, which no server does for it.
partnerCommand.addCommand(movePartnerCommand)

function inWords(partner: Partner): string {
  const { id, name, createdAt, paused, suspended, settings, openCycle, floats, keys, members } = partner
  const stop = (stopped: Partner['paused']) => (stopped === null ? 'no' : stopInWords(stopped))
  return [
    sheet({
      id,
      name,
      created: createdAt,
      paused: stop(paused),
      suspended: stop(suspended),
      'open cycle': openCycle === null ? null : `${openCycle.id}, ${openCycle.startDate} to ${openCycle.endDate}`,
      members: `${members.active} active, ${members.invited} invited, ${members.inactive} inactive`,
      keys: `${keys.valid} valid, ${keys.expired} expired, ${keys.revoked} revoked`,
    }),
    '',
    sheet(settings),
    '',
    inTable(floats),
  ].join('\n')
}

function changesInWords({ settings: before }: Partner, { name, settings: after }: Partner): string {
  const names = Object.keys(after) as (keyof typeof after)[]
  const changes = names.filter(each => after[each] !== before[each])
  return changes.length === 0
    ? `No change: ${name} already has these settings.`
    : sheet(Object.fromEntries(changes.map(each => [each, `${before[each]} → ${after[each]}`])))
}

function optionsOf(name: string, setting: Setting, { hasDefault }: { hasDefault: boolean }): Option[] {
  const { kind, description, byDefault, label, bounds, choices } = setting
  const words = name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)
  const withDefault = (text: string, shown: string) => (hasDefault && shown !== '' ? `${text} (${shown})` : text)
  if (kind === 'switch')
    return [
      new Option(`--${words}`, uncapitalised(label)),
      new Option(`--no-${words}`, withDefault(`do not ${uncapitalised(label)}`, 'default')),
    ]
  const [help = ''] = description.split(/\.(?: |$)/)
  const shown = byDefault === '' ? '' : `default: ${byDefault}`
  const option = new Option(`--${words} <${placeholders[kind]}>`, withDefault(uncapitalised(help), shown))
  if (choices !== undefined) return [option.choices(Object.keys(choices))]
  if (bounds !== undefined) return [option.argParser(whole(bounds))]
  return [option.argParser(kind === 'day' ? day : accepted(setting))]
}

function accepted({ accepts, advice }: Setting): (text: string) => string {
  return text => {
    if (accepts?.(text) === false) throw new InvalidArgumentError(`${advice}.`)
    return text
  }
}

/** Begins a text in lower case, unless it begins with an abbreviation. */
function uncapitalised(text: string): string {
  return text.replace(/^[A-Z](?=[a-z ])/, letter => letter.toLowerCase())
}
