import { Ajv } from 'ajv'
import { type Static, Type } from 'typebox'

/**
 * Every setting, once: this gives the types, the defaults, the table in docs/operations/settings.md and the refusal to
 * start. The environment is read here and nowhere else.
 */
export const Settings = Type.Object({
  HOST: Type.String({ default: '127.0.0.1', minLength: 1, description: 'Address to listen on. `0.0.0.0` for all.' }),
  PORT: Type.Integer({
    default: 8080,
    minimum: 0,
    maximum: 65535,
    description: 'Port to listen on. `0` for any free one.',
  }),
  DATABASE_URL: Type.String({
    default: '',
    pattern: '^(postgres(ql)?://.+)?$',
    description:
      'PostgreSQL 15 or later, for example `postgres://openwage@db.internal/openwage`. Empty: the PostgreSQL that comes with Openwage.',
  }),
  OPENWAGE_DATA_DIR: Type.String({
    default: '',
    description:
      'Folder of the PostgreSQL that comes with Openwage. Empty: `data` in the checkout, or a folder in /var/lib/openwage where PostgreSQL may not enter the checkout.',
  }),
  OPENWAGE_MODE: Type.Unsafe<'sandbox' | 'live'>({
    type: 'string',
    enum: ['sandbox', 'live'],
    default: 'sandbox',
    description:
      '`sandbox` for trying out, with demo data and `ow_test_…` keys; `live` for people’s wages. A database is for one of them, for good.',
  }),
  OPENWAGE_DATABASE_CONNECTIONS: Type.Integer({
    default: 20,
    minimum: 2,
    maximum: 500,
    description: 'Largest number of database connections of this process.',
  }),
  OPENWAGE_LOG_LEVEL: Type.Unsafe<'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent'>({
    type: 'string',
    enum: ['trace', 'debug', 'info', 'warn', 'error', 'silent'],
    default: 'info',
    description: 'Least important log lines that are written.',
  }),
})
export type Settings = Static<typeof Settings>

/** A setting that is missing or odd, in a sentence that names it. */
export class SettingsProblem extends Error {}

/** @throws SettingsProblem */
export function readSettings(environment: NodeJS.ProcessEnv): Settings {
  const given = Object.fromEntries(
    Object.entries(Settings.properties).map(([name, schema]) => [
      name,
      read(environment[name], schema as { type?: unknown; default?: unknown }),
    ]),
  )
  const ajv = new Ajv({ allErrors: true, strict: false })
  if (ajv.validate(Settings, given)) return given as Settings
  const error = ajv.errors?.[0]
  const name = error?.instancePath.slice(1) ?? 'A setting'
  const allowed = error?.keyword === 'enum' ? `: ${(error.params.allowedValues as string[]).join(', ')}` : ''
  // The value is not shown: a database address holds a password.
  throw new SettingsProblem(`${name} ${error?.message ?? 'is not valid'}${allowed}`)
}

function read(text: string | undefined, schema: { type?: unknown; default?: unknown }): unknown {
  if (text === undefined || text === '') return schema.default
  // An integer in any other writing stays text, and is refused as such.
  return schema.type === 'integer' && /^[0-9]{1,9}$/.test(text) ? Number(text) : text
}
