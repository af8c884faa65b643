import { announce } from '../../act.ts'
import { Check, Choice, Field, readFields, wholeNumber } from '../../components/form.tsx'
import { KeyValues } from '../../components/layout.tsx'
import { Changes, ReviewedForm } from '../../components/reviewed-form.tsx'
import {
  type PartnerId,
  type PartnerSettingField,
  type PartnerSettings,
  partnerSettingFields,
} from '../../generated/operator.ts'
import { operators } from '../../operators.ts'

/** What a new partner has, unless other settings are chosen. */
export const defaultSettings = Object.fromEntries(
  partnerSettingFields.map(({ name, byDefault }) => [name, byDefault]),
) as PartnerSettings

/** The fields of all settings. */
export function SettingFields({ values }: { values: PartnerSettings }) {
  return [...Map.groupBy(partnerSettingFields, ({ group }) => group)].map(([group, members]) => (
    <fieldset key={group} class="setting-group">
      <legend>{group}</legend>
      {members.map(setting => (
        <SettingField key={setting.name} setting={setting} value={values[setting.name]} />
      ))}
    </fieldset>
  ))
}

type SettingFieldProps = { setting: PartnerSettingField; value: PartnerSettings[keyof PartnerSettings] }

function SettingField({ setting, value }: SettingFieldProps) {
  const { name, kind, label, unit, note, choices, byDefault } = setting
  if (kind === 'switch') return <Check label={label} name={name} isOn={value === true} />
  if (choices !== undefined) return <Choice label={label} name={name} value={String(value)} choices={choices} />
  return (
    <Field
      name={name}
      note={note}
      value={String(value)}
      label={unit === undefined ? label : `${label}, ${unit}`}
      type={kind === 'day' ? 'date' : 'text'}
      suggestions={kind === 'zone' ? Intl.supportedValuesOf('timeZone') : undefined}
      isRequired={byDefault !== ''}
    />
  )
}

/** @throws FieldProblems */
export function readSettings(fields: Record<string, string>): PartnerSettings {
  return readFields(fields, field => {
    const read = ({ name, kind }: PartnerSettingField) => {
      if (kind === 'switch') return fields[name] === 'on'
      return kind === 'number' ? field(name, wholeNumber) : (fields[name] ?? '')
    }
    // The service validates the values.
    return Object.fromEntries(partnerSettingFields.map(setting => [setting.name, read(setting)])) as PartnerSettings
  })
}

function inWords({ name, choices, unit }: PartnerSettingField, settings: PartnerSettings): string {
  const value = settings[name]
  if (typeof value === 'boolean') return value ? 'Yes' : 'No'
  if (choices !== undefined) return choices[value] ?? String(value)
  return unit === undefined ? String(value) : `${value} ${unit}`
}

export function SettingValues({ values }: { values: PartnerSettings }) {
  return <KeyValues entries={partnerSettingFields.map(setting => [setting.label, inWords(setting, values)])} />
}

type ChangeSettingsProps = { partnerId: PartnerId; values: PartnerSettings; onDone: () => void }

/** Changes settings after showing the old and new value of each. */
export function ChangeSettings({ partnerId, values, onDone }: ChangeSettingsProps) {
  return (
    <ReviewedForm
      plan={async fields => {
        const wanted = readSettings(fields)
        // Read now: settings may have changed since the page was loaded.
        const { settings: before } = await operators.getPartner(partnerId)
        const changed = partnerSettingFields.filter(
          ({ name }) => wanted[name] !== values[name] && wanted[name] !== before[name],
        )
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
                before: inWords(setting, before),
                after: inWords(setting, wanted),
              }))}
            />
            <p>Changes apply only to things that start afterwards, for example the next pay cycle.</p>
          </>
        )
      }
      confirm={({ changed }) => (changed.length === 0 ? null : 'Save')}
      onConfirm={async ({ changed, wanted }) => {
        await operators.updatePartner(partnerId, Object.fromEntries(changed.map(({ name }) => [name, wanted[name]])))
        announce('Settings changed', 'operator-partner')
        onDone()
      }}
    >
      <SettingFields values={values} />
    </ReviewedForm>
  )
}
