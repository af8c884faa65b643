import { type Static, Type } from 'typebox'
import { ajv } from './json-schema.ts'

/** Where a worker answers health probes unless a port is set. */
export const defaultHealthPort = 8081

/**
 * Every setting, once: this gives the types, the defaults, the table in docs/reference/settings.md and the refusal to
 * start. The environment is read here and nowhere else.
 */
export const Settings = Type.Object({
  HOST: Type.String({ default: '127.0.0.1', description: 'Address to listen on. `0.0.0.0` for all.' }),
  PORT: Type.Integer({
    default: 8080,
    minimum: 0,
    maximum: 65535,
    description: 'Port to listen on. `0` for any free one.',
  }),
  DATABASE_URL: Type.String({
    default: '',
    pattern: '^(postgres(ql)?://.+)?$',
    examples: ['postgres://openwage@db.internal/openwage'],
    description:
      'PostgreSQL 15 or later, for example `postgres://openwage@db.internal/openwage`. Empty: the PostgreSQL that comes with Openwage.',
  }),
  DATABASE_OWNER_URL: Type.String({
    default: '',
    pattern: '^(postgres(ql)?://.+)?$',
    examples: ['postgres://openwage_owner@db.internal/openwage'],
    description:
      'For `openwage migrate`: the same database, as the role that owns it, for example `postgres://openwage_owner@db.internal/openwage`. Empty: `DATABASE_URL`, whose role then must own the database. The service does not need it.',
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
    description:
      'Largest number of database connections of this process; the API has up to 8 more for its batches, a worker up to 7 for its queue.',
  }),
  OPENWAGE_TRUST_PROXY: Type.String({
    default: '',
    pattern: '^([0-9A-Fa-f:.]+(/[0-9]{1,3})?(,[0-9A-Fa-f:.]+(/[0-9]{1,3})?)*)?$',
    examples: ['127.0.0.1', '10.0.0.0/8,fd00::/8'],
    description:
      'Addresses or networks of the proxies in front of the API, separated by commas; their `x-forwarded-for` names the caller. Empty: it is ignored, and the connecting address is the caller. Unknown API keys are limited per caller.',
  }),
  OPENWAGE_LOG_LEVEL: Type.Unsafe<'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent'>({
    type: 'string',
    enum: ['trace', 'debug', 'info', 'warn', 'error', 'silent'],
    default: 'info',
    description: 'Least important log lines that are written.',
  }),
  // Without a default in the schema, so that a start can tell a port that was chosen from one that was not.
  OPENWAGE_HEALTH_PORT: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 65535,
      description: `Port on which \`start --worker\` answers \`/livez\` and \`/readyz\`; a process with the API answers them on \`PORT\`. \`0\` for any free one. Empty: ${defaultHealthPort}, and if that is in use the worker logs a warning and runs without them. A port that is set and in use stops the start.`,
    }),
  ),
  OPENWAGE_DRAIN_SECONDS: Type.Integer({
    default: 2,
    minimum: 0,
    maximum: 60,
    description:
      'How long to go on answering after SIGTERM, while `/readyz` says 503, so that a load balancer sends requests elsewhere. Ctrl-C does not wait.',
  }),
  OPENWAGE_DOCS: Type.Unsafe<'on' | 'off'>({
    type: 'string',
    enum: ['on', 'off'],
    default: 'on',
    description: '`off` to serve no documentation: /docs is a 404, /openapi.json stays.',
  }),
  OPENWAGE_URL: Type.String({
    default: 'http://127.0.0.1:8080',
    pattern: '^https?://[^\\s?#]+$',
    examples: ['https://pay.example.com'],
    description: 'For the commands `openwage members …`, which go over the API: where it is.',
  }),
  OPENWAGE_API_KEY: Type.String({
    default: '',
    description: 'For the same commands: the API key of the partner whose members they are.',
  }),
})
export type Settings = Static<typeof Settings>

/** Settings that are odd or unknown, each in a sentence that names it. */
export class SettingsProblem extends Error {}

/** @throws SettingsProblem */
export function readSettings(environment: NodeJS.ProcessEnv): Settings {
  const given = Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, read(environment[name], schema)]),
  )
  // A slip such as OPENWAGE_MOD=live must not start a sandbox.
  const unknown = Object.keys(environment).filter(name => name.startsWith('OPENWAGE_') && !(name in given))
  const names = Object.keys(schemas) as (keyof Settings)[]
  const required: readonly string[] = Settings.required
  const odd = names.filter(name => {
    if (given[name] === undefined) return required.includes(name)
    return !ajv.validate(schemas[name], given[name])
  })
  if (odd.length === 0 && unknown.length === 0) return given as Settings
  // The values are not shown: a database address holds a password.
  throw new SettingsProblem(
    [
      ...[...new Set(odd)].map(name => `${name} must be ${wanted(schemas[name])}`),
      ...unknown.map(name => `${name} is not a setting; docs/reference/settings.md lists them`),
    ].join('; '),
  )
}

// TypeBox types the values; what these objects are besides is JSON Schema.
type Schema = {
  type?: string
  default?: unknown
  minimum?: number
  maximum?: number
  enum?: string[]
  examples?: unknown
}

const schemas = Settings.properties as Record<keyof Settings, Schema>

function read(text: string | undefined, { type, default: otherwise }: Schema): unknown {
  if (text === undefined || text === '') return otherwise
  // An integer in any other writing stays text, and is refused as such.
  return type === 'integer' && /^[0-9]{1,9}$/.test(text) ? Number(text) : text
}

function wanted(schema: Schema): string {
  if (schema.type === 'integer') return `a whole number from ${schema.minimum} to ${schema.maximum}`
  if (schema.enum !== undefined) return `one of ${schema.enum.join(', ')}`
  return `like ${[schema.examples].flat().join(' or ')}`
}
