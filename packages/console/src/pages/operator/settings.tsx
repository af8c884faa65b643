import { admin } from '../../admin.ts'
import { Check, Choice, Field, readFields, wholeNumber } from '../../components/form.tsx'
import { KeyValues } from '../../components/layout.tsx'
import { Changes, ReviewedForm } from '../../components/reviewed-form.tsx'
import { toast } from '../../components/toast.tsx'
import type { PartnerId, PartnerSettings } from '../../generated/admin.ts'
import { reload } from '../../query.ts'

type Setting = {
  name: keyof PartnerSettings
  label: string
  unit?: string
  note?: string
} & ({ kind: 'text' | 'day' | 'number' | 'switch' | 'zone' } | { kind: 'choice'; choices: [string, string][] })

/** Every setting of a partner, in the order of the form. */
const groups: { title: string; settings: Setting[] }[] = [
  {
    title: 'Place',
    settings: [
      { name: 'timeZone', kind: 'zone', label: 'Time zone', note: 'Of its calendar days, for example Europe/London' },
      { name: 'country', kind: 'text', label: 'Country', note: 'Of phone numbers without a country code: two letters' },
    ],
  },
  {
    title: 'Pay cycles',
    settings: [
      {
        ...{ name: 'cycleSchedule', kind: 'choice', label: 'Length of a cycle' },
        choices: [
          ['weekly', 'A week'],
          ['two_weekly', 'Two weeks'],
          ['four_weekly', 'Four weeks'],
          ['semi_monthly', 'Half a month'],
          ['monthly', 'A month'],
        ],
      },
      {
        ...{ name: 'cycleAnchor', kind: 'day', label: 'A day on which a cycle starts' },
        note: 'Of a monthly cycle, from the 1st to the 28th',
      },
      {
        ...{ name: 'shortfallPolicy', kind: 'choice', label: 'What payroll could not deduct' },
        choices: [
          ['carry', 'Is carried to the next cycle'],
          ['write_off', 'Is written off'],
        ],
      },
    ],
  },
  {
    title: 'Withdrawals',
    settings: [
      { name: 'intentMinutes', kind: 'number', label: 'An intent is valid for', unit: 'minutes' },
      { name: 'holdSeconds', kind: 'number', label: 'A withdrawal can be cancelled for', unit: 'seconds' },
      { name: 'graceMinutes', kind: 'number', label: 'A pay run can be reverted for', unit: 'minutes' },
    ],
  },
  {
    title: 'Members',
    settings: [
      { name: 'autoActivate', kind: 'switch', label: 'Members are active once invited' },
      {
        ...{ name: 'offboardReviewPercent', kind: 'number', label: 'A list may offboard', unit: '% of the members' },
        note: 'One that would offboard more waits for approval',
      },
      { name: 'reviewDays', kind: 'number', label: 'A list that waits is rejected after', unit: 'days' },
    ],
  },
  {
    title: 'Requests',
    settings: [
      { name: 'requestsPerSecond', kind: 'number', label: 'Sustained', unit: 'requests a second' },
      { name: 'requestsBurst', kind: 'number', label: 'In a burst', unit: 'requests' },
    ],
  },
]
const all = groups.flatMap(({ settings }) => settings)

/** The fields of all settings. Not a component: the form learns at once which problems stand at their fields. */
export function settingFields(values: PartnerSettings, problemOf: (name: string) => string | undefined) {
  return groups.map(({ title, settings }) => (
    <fieldset key={title} class="setting-group">
      <legend>{title}</legend>
      {settings.map(setting => (
        <SettingField
          key={setting.name}
          setting={setting}
          value={values[setting.name]}
          // The others have no text that could be wrong.
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
  setting: Setting
  value: PartnerSettings[keyof PartnerSettings]
  problem: string | undefined
}) {
  const { name, label, unit, note } = setting
  if (setting.kind === 'switch') return <Check label={label} name={name} isOn={value === true} />
  if (setting.kind === 'choice')
    return <Choice label={label} name={name} value={String(value)} choices={setting.choices} />
  return (
    <Field
      {...{ name, note, problem, value: String(value) }}
      label={unit === undefined ? label : `${label}, ${unit}`}
      type={setting.kind === 'day' ? 'date' : 'text'}
      suggestions={setting.kind === 'zone' ? Intl.supportedValuesOf('timeZone') : undefined}
      isRequired
    />
  )
}

/** @throws FieldProblems */
export function readSettings(fields: Record<string, string>): PartnerSettings {
  return readFields(fields, field => {
    const read = ({ name, kind }: Setting) => {
      if (kind === 'switch') return fields[name] === 'on'
      return kind === 'number' ? field(name, wholeNumber) : (fields[name] ?? '')
    }
    // The service judges the values.
    return Object.fromEntries(all.map(setting => [setting.name, read(setting)])) as PartnerSettings
  })
}

function inWords(setting: Setting, value: PartnerSettings[keyof PartnerSettings]): string {
  if (setting.kind === 'switch') return value === true ? 'Yes' : 'No'
  if (setting.kind === 'choice') return setting.choices.find(([key]) => key === value)?.[1] ?? String(value)
  return setting.unit === undefined ? String(value) : `${value} ${setting.unit}`
}

export function SettingValues({ values }: { values: PartnerSettings }) {
  return <KeyValues entries={all.map(setting => [setting.label, inWords(setting, values[setting.name])])} />
}

/** Changes settings, after showing each with its value before and after. */
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
        const changed = all.filter(({ name }) => wanted[name] !== values[name])
        return { changed, wanted }
      }}
      review={({ changed, wanted }) =>
        changed.length === 0 ? (
          <p class="notice">Nothing would change.</p>
        ) : (
          <>
            <Changes
              label="Settings"
              changes={changed.map(setting => ({
                name: setting.label,
                before: inWords(setting, values[setting.name]),
                after: inWords(setting, wanted[setting.name]),
              }))}
            />
            <p>A change applies to what starts afterwards, for example to the next pay cycle.</p>
          </>
        )
      }
      confirm={({ changed }) => (changed.length === 0 ? null : 'Save')}
      onConfirm={async ({ changed, wanted }) => {
        await admin.updatePartner(partnerId, Object.fromEntries(changed.map(({ name }) => [name, wanted[name]])))
        toast('The settings are changed')
        reload('operator-partner')
        onDone()
      }}
    >
      {problemOf => settingFields(values, problemOf)}
    </ReviewedForm>
  )
}
