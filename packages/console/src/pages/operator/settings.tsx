import { Check, Choice, Field, readFields, wholeNumber } from '../../components/form.tsx'
import { KeyValues } from '../../components/layout.tsx'
import { Changes, ReviewedForm } from '../../components/reviewed-form.tsx'
import type { PartnerId, PartnerSettings } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { reload } from '../../query.ts'
import { toast } from '../../toasts.ts'

type Name = keyof PartnerSettings
type Setting<N extends Name = Name> = {
  group: string
  label: string
  unit?: string
  note?: string
  isOptional?: true
} & (
  | { kind: 'text' | 'day' | 'number' | 'switch' | 'zone' }
  | { kind: 'choice'; choices: Record<PartnerSettings[N] & string, string> }
)

/** Every setting of a partner, in the order of the form. */
const settings: { [N in Name]: Setting<N> } = {
  timeZone: {
    group: 'Place',
    kind: 'zone',
    label: 'Time zone',
    note: 'Used for calendar days, for example Europe/London',
  },
  country: {
    ...{ group: 'Place', kind: 'text', label: 'Country' },
    note: 'Two letters; used for phone numbers without a country code',
  },
  cycleSchedule: {
    ...{ group: 'Pay cycles', kind: 'choice', label: 'Cycle length' },
    choices: {
      weekly: 'One week',
      two_weekly: 'Two weeks',
      four_weekly: 'Four weeks',
      semi_monthly: 'Half a month',
      monthly: 'One month',
    },
  },
  cycleAnchor: {
    ...{ group: 'Pay cycles', kind: 'day', label: 'Cycle start date' },
    note: 'For a monthly cycle, from the 1st to the 28th',
  },
  shortfallPolicy: {
    ...{ group: 'Pay cycles', kind: 'choice', label: 'Shortfalls in deductions' },
    choices: { carry: 'Shortfall: carry over', write_off: 'Shortfall: write off' },
  },
  intentMinutes: { group: 'Withdrawals', kind: 'number', label: 'Intent validity', unit: 'minutes' },
  holdSeconds: { group: 'Withdrawals', kind: 'number', label: 'Cancellation period of withdrawals', unit: 'seconds' },
  graceMinutes: { group: 'Withdrawals', kind: 'number', label: 'Grace period of pay runs', unit: 'minutes' },
  autoActivate: { group: 'Members', kind: 'switch', label: 'Activate members when invited' },
  offboardReviewPercent: {
    ...{
      group: 'Members',
      kind: 'number',
      label: 'Offboarding per import without approval',
      unit: '% of the members',
    },
    note: 'An import that would offboard more needs approval',
  },
  remittanceText: {
    ...{ group: 'Withdrawals', kind: 'text', label: 'Text on bank statements', isOptional: true },
    note: "On SEPA payments: letters without accents, digits, spaces and / - ? : ( ) . , ' +",
  },
  reviewDays: { group: 'Members', kind: 'number', label: 'Reject imports awaiting approval after', unit: 'days' },
  metadataInEvents: { group: 'Events', kind: 'switch', label: 'Include metadata in events' },
  requestsPerSecond: { group: 'Requests', kind: 'number', label: 'Sustained rate', unit: 'requests per second' },
  requestsBurst: { group: 'Requests', kind: 'number', label: 'Burst', unit: 'requests' },
}
const all = Object.entries(settings).map(([name, setting]) => ({ name: name as Name, ...(setting as Setting) }))
type Named = (typeof all)[number]

/** The fields of all settings. Not a component: the form must know at once which problems have a field. */
export function settingFields(values: PartnerSettings, problemOf: (name: string) => string | undefined) {
  return [...Map.groupBy(all, ({ group }) => group)].map(([group, members]) => (
    <fieldset key={group} class="setting-group">
      <legend>{group}</legend>
      {members.map(setting => (
        <SettingField
          key={setting.name}
          setting={setting}
          value={values[setting.name]}
          // Switches and choices cannot be invalid.
          problem={setting.kind === 'switch' || setting.kind === 'choice' ? undefined : problemOf(setting.name)}
        />
      ))}
    </fieldset>
  ))
}

function SettingField({
  setting,
  value,
  problem,
}: {
  setting: Named
  value: PartnerSettings[keyof PartnerSettings]
  problem: string | undefined
}) {
  const { name, label, unit, note, isOptional } = setting
  if (setting.kind === 'switch') return <Check label={label} name={name} isOn={value === true} />
  if (setting.kind === 'choice')
    return <Choice label={label} name={name} value={String(value)} choices={Object.entries(setting.choices)} />
  return (
    <Field
      {...{ name, note, problem, value: String(value) }}
      label={unit === undefined ? label : `${label}, ${unit}`}
      type={setting.kind === 'day' ? 'date' : 'text'}
      suggestions={setting.kind === 'zone' ? Intl.supportedValuesOf('timeZone') : undefined}
      isRequired={isOptional !== true}
    />
  )
}

/** @throws FieldProblems */
export function readSettings(fields: Record<string, string>): PartnerSettings {
  return readFields(fields, field => {
    const read = ({ name, kind }: Named) => {
      if (kind === 'switch') return fields[name] === 'on'
      return kind === 'number' ? field(name, wholeNumber) : (fields[name] ?? '')
    }
    // The service validates the values.
    return Object.fromEntries(all.map(setting => [setting.name, read(setting)])) as PartnerSettings
  })
}

function inWords(setting: Setting, value: PartnerSettings[keyof PartnerSettings]): string {
  if (setting.kind === 'switch') return value === true ? 'Yes' : 'No'
  if (setting.kind === 'choice') return setting.choices[String(value)] ?? String(value)
  return setting.unit === undefined ? String(value) : `${value} ${setting.unit}`
}

export function SettingValues({ values }: { values: PartnerSettings }) {
  return <KeyValues entries={all.map(setting => [setting.label, inWords(setting, values[setting.name])])} />
}

/** Changes settings after showing the old and new value of each. */
export function ChangeSettings({
  partnerId,
  values,
  onDone,
}: {
  partnerId: PartnerId
  values: PartnerSettings
  onDone: () => void
}) {
  return (
    <ReviewedForm
      plan={async fields => {
        const wanted = readSettings(fields)
        // Read now: settings may have changed since the page was loaded.
        const { settings: before } = await operators.getPartner(partnerId)
        const changed = all.filter(({ name }) => wanted[name] !== values[name] && wanted[name] !== before[name])
        return { changed, wanted, before }
      }}
      review={({ changed, wanted, before }) =>
        changed.length === 0 ? (
          <p class="notice">No changes.</p>
        ) : (
          <>
            <Changes
              label="Settings"
              changes={changed.map(setting => ({
                name: setting.label,
                before: inWords(setting, before[setting.name]),
                after: inWords(setting, wanted[setting.name]),
              }))}
            />
            <p>Changes apply only to things that start afterwards, for example the next pay cycle.</p>
          </>
        )
      }
      confirm={({ changed }) => (changed.length === 0 ? null : 'Save')}
      onConfirm={async ({ changed, wanted }) => {
        await operators.updatePartner(partnerId, Object.fromEntries(changed.map(({ name }) => [name, wanted[name]])))
        toast('Settings changed')
        reload('operator-partner')
        onDone()
      }}
    >
      {problemOf => settingFields(values, problemOf)}
    </ReviewedForm>
  )
}
