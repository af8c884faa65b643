import { type Static, Type } from 'typebox'
import { ajv } from './kernel/json-schema.ts'
import { retentionSettings } from './kernel/retention.ts'

/** The default port for a worker's health probes. */
export const defaultHealthPort = 8081

// Credentials never cross a network in plain text.
const safeAddress = '^(https://[^\\s/?#@]+/?|http://(127\\.0\\.0\\.1|localhost|\\[::1\\])(:[0-9]+)?/?)?$'
// The same with a path and a query.
const noticeAddress = '^(https://[^\\s#@]+|http://(127\\.0\\.0\\.1|localhost|\\[::1\\])(:[0-9]+)?(/[^\\s#]*)?)?$'

type TextRules = { default?: string; pattern?: string; examples?: string[]; writeOnly?: true }

/** A text, which is empty unless it is set. */
const text = (description: string, rules: TextRules = {}) => Type.String({ default: '', ...rules, description })

/** A secret, or an address that can have one. */
const secret = (description: string, rules: TextRules = {}) => text(description, { writeOnly: true, ...rules })

const choice = <Word extends string>(words: Word[], about: { default: NoInfer<Word>; description: string }) =>
  Type.Unsafe<Word>({ type: 'string', enum: words, ...about })

/**
 * Every setting, declared once. Types, defaults, validation and the table in docs/reference/settings.md derive from it.
 * The environment is read only here.
 */
export const Settings = Type.Object({
  HOST: text('Address to listen on. `0.0.0.0` listens on all.', { default: '127.0.0.1' }),
  PORT: Type.Integer({
    default: 8080,
    minimum: 0,
    maximum: 65535,
    description: 'Port to listen on. `0` picks a free port.',
  }),
  DATABASE_URL: secret(
    'PostgreSQL 15 or later, for example `postgres://midmonth@db.internal/midmonth`. With several hosts, separated by commas, connections lead to the one that accepts writes; see docs/operations/high-availability.md. If empty, Midmonth runs its embedded PostgreSQL.',
    { pattern: '^(postgres(ql)?://.+)?$', examples: ['postgres://midmonth@db.internal/midmonth'] },
  ),
  DATABASE_OWNER_URL: secret(
    'The same database with the role that owns it, for example `postgres://midmonth_owner@db.internal/midmonth`. Used to migrate. If empty, `DATABASE_URL` is used, and its role must own the database.',
    { pattern: '^(postgres(ql)?://.+)?$', examples: ['postgres://midmonth_owner@db.internal/midmonth'] },
  ),
  MIDMONTH_REPLICA_URL: secret(
    'A replica of the database, for the overview, the event feed, statements, lists of members and deductions, and exports. It is read only once it has every write that was acknowledged before; otherwise, and without this setting, the primary is. See docs/operations/high-availability.md.',
    { pattern: '^(postgres(ql)?://[^,]+)?$', examples: ['postgres://midmonth_app@db-replica.internal/midmonth'] },
  ),
  MIDMONTH_DATA_DIR: text(
    'Data folder of the embedded PostgreSQL. If empty, the folder is `data` in the checkout, or one in /var/lib/midmonth if PostgreSQL cannot access the checkout.',
  ),
  MIDMONTH_MODE: choice(['sandbox', 'live'], {
    default: 'sandbox',
    description:
      '`sandbox` for testing, with demo data and `mm_test_…` keys; `live` for real wages. A database belongs to one mode and cannot switch.',
  }),
  MIDMONTH_DATABASE_CONNECTIONS: Type.Integer({
    default: 20,
    minimum: 2,
    maximum: 500,
    description:
      'Maximum number of database connections of this process. The API uses up to 8 more for batches (16 on Citus), and a worker up to 7 more for its queue.',
  }),
  MIDMONTH_LANES: choice(['auto', 'shared', 'partner'], {
    default: 'auto',
    description:
      'Which commands the API writes in one batch. `auto`: what suits the database, and nothing else works on Citus. `shared`: commands of all partners, which is faster on one database. `partner`: commands of one partner, so that a distributed PostgreSQL (Citus) can route every statement to one node.',
  }),
  MIDMONTH_TRUST_PROXY: text(
    'Comma-separated addresses or networks of trusted proxies. For requests from them, `x-forwarded-for` gives the caller’s address; otherwise it is ignored. The address is used to rate-limit requests with unknown API keys.',
    {
      pattern: '^([0-9A-Fa-f:.]+(/[0-9]{1,3})?(,[0-9A-Fa-f:.]+(/[0-9]{1,3})?)*)?$',
      examples: ['127.0.0.1', '10.0.0.0/8,fd00::/8'],
    },
  ),
  MIDMONTH_PUBLIC_URL: text(
    'Public address of the service, used in links, for the hosted page of member sessions and for the packages in the guides. `start` requires it in live mode. If empty in a sandbox, the hosted page is at the address that the partner’s request was sent to.',
    { pattern: '^(https?://[^\\s/?#]+/?)?$', examples: ['https://pay.example.com'] },
  ),
  MIDMONTH_OIDC_ISSUER: text(
    'Issuer of the OpenID provider through which people sign in to the console; see docs/operations/users.md. If empty, they sign in with a password. In live mode it must be `https`.',
    { pattern: '^(https?://[^\\s?#]+)?$', examples: ['https://login.example.com/realms/staff'] },
  ),
  MIDMONTH_OIDC_CLIENT_ID: text('The id of Midmonth at the OpenID provider.'),
  MIDMONTH_OIDC_CLIENT_SECRET: secret(
    'The secret of Midmonth at the OpenID provider. If empty, Midmonth is a public client.',
  ),
  MIDMONTH_OIDC_GROUPS_CLAIM: text('The claim of the ID token that lists the groups of a user.', { default: 'groups' }),
  MIDMONTH_OIDC_ROLES: text(
    'What the groups of the OpenID provider grant, as JSON: `{"operations":["operator"],"acme-payroll":["payroll@par_…"]}`. The groups then decide all roles of people who sign in through the provider. If empty, roles are given in the console.',
  ),
  MIDMONTH_STATE_DIR: text(
    'Folder of the installation’s key file and of the journal of erased members, unless another setting places them. Packages and images set it; it chooses no key, so a key in Vault or AWS KMS can be set beside it. If empty, a folder beside the data folder (`data-key` in the checkout).',
  ),
  MIDMONTH_INSTALLATION_KEY_FILE: text(
    'Path of the file with the installation’s key, which protects the secrets in the database; see docs/operations/keys.md. All processes need the same key. The first start with an empty database creates the file. If empty, the file is `installation.key` in `MIDMONTH_STATE_DIR`.',
  ),
  MIDMONTH_INSTALLATION_KEY: secret(
    'The installation’s key itself instead of a file: 32 bytes in base64, for example from `openssl rand -base64 32`.',
    { pattern: '^([A-Za-z0-9+/]{43}=)?$', examples: ['the output of: openssl rand -base64 32'] },
  ),
  MIDMONTH_VAULT_KEY: text(
    'The installation’s key in HashiCorp Vault, instead of a file: the mount of the transit engine and the name of the key, for example `transit/midmonth`; see docs/operations/keys.md.',
    { pattern: '^([\\w.-]+(/[\\w.-]+)+)?$', examples: ['transit/midmonth'] },
  ),
  MIDMONTH_VAULT_ADDRESS: text('Address of Vault, or of its agent on this machine. Only the latter may be `http`.', {
    pattern: safeAddress,
    examples: ['https://vault.example.com:8200', 'http://127.0.0.1:8100'],
  }),
  MIDMONTH_VAULT_NAMESPACE: text('Namespace of the key in Vault Enterprise.', {
    pattern: '^([\\w./-]+)?$',
    examples: ['admin/payroll'],
  }),
  MIDMONTH_VAULT_TOKEN: secret(
    'Token for Vault. If this and the file are empty, none is sent, as to an agent that adds its own.',
    { pattern: '^[\\x21-\\x7e]*$', examples: ['a token of Vault'] },
  ),
  MIDMONTH_VAULT_TOKEN_FILE: text(
    'Path of a file with the token for Vault, which may be replaced at any time. Only the user of the service may read it.',
  ),
  MIDMONTH_AWS_KMS_KEY: text(
    'The installation’s key in AWS KMS, instead of a file: the ARN of a symmetric key; see docs/operations/keys.md.',
    {
      pattern: '^(arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+)?$',
      examples: ['arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab'],
    },
  ),
  MIDMONTH_AWS_KMS_ENDPOINT: text(
    'Address of AWS KMS, for example of a VPC endpoint. If empty, its public address in the key’s region.',
    { pattern: safeAddress, examples: ['https://vpce-….kms.eu-west-1.vpce.amazonaws.com'] },
  ),
  AWS_ACCESS_KEY_ID: secret(
    'AWS credentials for the key in AWS KMS. If empty, they come from the container (`AWS_CONTAINER_CREDENTIALS_…`) or the instance.',
  ),
  AWS_SECRET_ACCESS_KEY: secret('The secret of `AWS_ACCESS_KEY_ID`.'),
  AWS_SESSION_TOKEN: secret('The token of temporary AWS credentials.'),
  AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: text('Set by ECS: where the container gets AWS credentials.'),
  AWS_CONTAINER_CREDENTIALS_FULL_URI: text('Set by EKS Pod Identity: where the container gets AWS credentials.'),
  AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: text('Set by EKS Pod Identity: the file with the token for that address.'),
  AWS_EC2_METADATA_SERVICE_ENDPOINT: text('Where an EC2 instance gets AWS credentials.', {
    default: 'http://169.254.169.254',
  }),
  MIDMONTH_ERASURE_JOURNAL: text(
    'Path of the journal of erased members, by which a database that is restored from a backup erases them again; see docs/operations/erasure.md. All processes that serve the API need the same file. If empty, the file is `erasures.jsonl` in `MIDMONTH_STATE_DIR`, or, if that is empty too, beside the installation’s key file.',
  ),
  MIDMONTH_BACKUP_DIR: text(
    'Folder for the backups of the embedded PostgreSQL and its WAL, on another disk or machine; see docs/operations/backups.md. Every process and command needs the same setting.',
  ),
  MIDMONTH_BACKUP_RECIPIENTS: text(
    'Comma-separated public keys of [age](https://age-encryption.org), for which the backups in `MIDMONTH_BACKUP_DIR` are encrypted. Only their private keys, which Midmonth never needs for a backup, can restore one.',
    { pattern: '^(age1[0-9a-z]+(,age1[0-9a-z]+)*)?$', examples: ['the public key that age-keygen prints: age1…'] },
  ),
  MIDMONTH_BACKUP_DAYS: Type.Integer({
    default: 35,
    minimum: 1,
    maximum: 3_650,
    description:
      'How many days your backups of the database are kept, at most. `midmonth backup take` deletes older ones from `MIDMONTH_BACKUP_DIR`; others are yours to delete. The receipt of an erasure names the day on which the last one with the member’s data is gone.',
  }),
  MIDMONTH_LOG_LEVEL: choice(['trace', 'debug', 'info', 'warn', 'error', 'silent'], {
    default: 'info',
    description: 'Minimum level of log lines.',
  }),
  MIDMONTH_TRACES: choice(['on', 'off'], {
    default: 'off',
    description:
      '`on` makes spans of requests, batches, tasks and outgoing calls for the OpenTelemetry SDK that is loaded beside the program; see docs/operations/tracing.md.',
  }),
  // The schema has no default: a configured port must be free, but the default port need not be.
  MIDMONTH_HEALTH_PORT: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 65535,
      description: `Port on which \`start --worker\` serves \`/livez\` and \`/readyz\`; with the API in the same process, they are on \`PORT\`. \`0\` picks a free port. If empty, ${defaultHealthPort}; if that is in use, the worker logs a warning and runs without them. If a port is set and in use, the start fails.`,
    }),
  ),
  MIDMONTH_METRICS_TOKEN: secret(
    'Token with which Prometheus reads `GET /metrics`, sent as `authorization: Bearer …`: 16 to 200 visible ASCII characters. If empty, `PORT` does not serve metrics; the port of health probes serves them to anyone who reaches it.',
    { pattern: '^([\\x21-\\x7e]{16,200})?$', examples: ['the output of: openssl rand -hex 32'] },
  ),
  MIDMONTH_RAILS: text(
    'Path of a JSON file with the banks that pay withdrawals; see docs/guides/go-live.md. Every process reads the file when it starts, and all need the same file. If empty, no bank is connected: a live installation refuses withdrawals, and a sandbox uses the simulated bank. If `DATABASE_URL` is also empty, the sandbox pays euros through the files of a demo bank.',
  ),
  MIDMONTH_APPROVAL_LOGINS: choice(['different', 'any'], {
    default: 'different',
    description:
      'Whether the two people who approve a batch with `midmonth payouts approve` need different operating system logins. `any`: the names given with `--as` are enough. See docs/guides/go-live.md for what this can guarantee.',
  }),
  MIDMONTH_WEBHOOK_LOOPBACK: choice(['auto', 'on', 'off'], {
    default: 'auto',
    description:
      'Whether webhook endpoints may be on this machine (`localhost`, 127.0.0.1). `auto`: only in a sandbox that itself listens on such an address. The ports of the database are never allowed.',
  }),
  MIDMONTH_NOTIFY_WEBHOOK_URL: secret(
    'Address to which the worker sends a signed request when something begins or stops needing attention; see docs/operations/notifications.md. Only an address on this machine may be `http`.',
    { pattern: noticeAddress, examples: ['https://alerts.example.com/midmonth'] },
  ),
  MIDMONTH_NOTIFY_WEBHOOK_SECRET: secret('The secret that signs these requests, as of the webhooks of partners.', {
    pattern: '^(whsec_[A-Za-z0-9+/]{32,}={0,2})?$',
    examples: ['whsec_ and the output of: openssl rand -base64 32'],
  }),
  MIDMONTH_NOTIFY_EMAIL: text('E-mail address of the operators that gets the same messages.', {
    pattern: '^([^\\s,@<>"]+@[^\\s,@<>"]+)?$',
    examples: ['ops@example.com'],
  }),
  MIDMONTH_NOTIFY_EMAIL_FROM: text(
    'E-mail address that sends them. If empty, they come from the address that gets them.',
    { pattern: '^([^\\s,@<>"]+@[^\\s,@<>"]+)?$', examples: ['midmonth@example.com'] },
  ),
  MIDMONTH_SMTP_URL: secret(
    'The mail server that sends them: `smtps` with TLS, by default on port 465; `smtp` with STARTTLS, by default on port 587. Only on this machine may `smtp` have no TLS.',
    { pattern: '^(smtps?://([^\\s/?#@]+@)?[^\\s/?#@]+/?)?$', examples: ['smtps://midmonth:PASSWORD@mail.example.com'] },
  ),
  MIDMONTH_NOTIFY_REMINDER_HOURS: Type.Integer({
    default: 24,
    minimum: 1,
    maximum: 720,
    description: 'After how many hours the operators are told again of what still needs attention.',
  }),
  MIDMONTH_DRAIN_SECONDS: Type.Integer({
    default: 2,
    minimum: 0,
    maximum: 60,
    description:
      'How long to keep serving after SIGTERM while `/readyz` returns 503, so that a load balancer takes the process out. Ctrl-C skips this.',
  }),
  MIDMONTH_DOCS: choice(['on', 'off'], {
    default: 'on',
    description: '`off` disables the documentation at /docs; /openapi.json is still served.',
  }),
  MIDMONTH_REQUEST_LOG: choice(['on', 'off'], {
    default: 'on',
    description:
      '`off` stops recording requests for `GET /v1/requests`. A partner that sends 100 requests a second fills about 3 GB a day.',
  }),
  ...retentionSettings,
  MIDMONTH_URL: text('Address of the API for the commands that call it; see [The command line](cli.md).', {
    default: 'http://127.0.0.1:8080',
    pattern: '^https?://[^\\s?#]+$',
    examples: ['https://pay.example.com'],
  }),
  MIDMONTH_API_KEY: secret('API key of the partner for the commands that call the API. It overrides `midmonth login`.'),
  MIDMONTH_OPERATOR_KEY: secret('Operator key for the commands of operators that work on a server, with `--url`.'),
})
export type Settings = Static<typeof Settings>

/** Invalid or unknown settings. The message names each one. */
export class SettingsProblem extends Error {}

/** @throws SettingsProblem */
export function readSettings(environment: NodeJS.ProcessEnv): Settings {
  const given = Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, read(environment[name], schema)]),
  )
  // A typo such as MIDMONTH_MOD=live must not start a sandbox.
  const unknown = Object.keys(environment).filter(name => name.startsWith('MIDMONTH_') && !(name in given))
  const names = Object.keys(schemas) as (keyof Settings)[]
  const required: readonly string[] = Settings.required
  const invalid = names.filter(name => {
    if (given[name] === undefined) return required.includes(name)
    return !ajv.validate(schemas[name], given[name])
  })
  if (invalid.length === 0 && unknown.length === 0) return given as Settings
  // Never shows the values: a database address contains a password.
  throw new SettingsProblem(
    [
      ...invalid.map(name => `${name} must be ${expectedValue(schemas[name])}`),
      ...unknown.map(name => `${name} is not a known setting; see docs/reference/settings.md`),
    ].join('; '),
  )
}

// TypeBox declares only the type of the value. The objects are JSON Schema.
type Schema = {
  type?: string
  default?: unknown
  minimum?: number
  maximum?: number
  enum?: string[]
  /** A secret, or an address that can have one. */
  writeOnly?: boolean
  examples?: unknown
}

const schemas = Settings.properties as Record<keyof Settings, Schema>

function read(text: string | undefined, { type, default: otherwise }: Schema): unknown {
  if (text === undefined || text === '') return otherwise
  // An integer written any other way stays text, and fails validation.
  return type === 'integer' && /^[0-9]{1,9}$/.test(text) ? Number(text) : text
}

function expectedValue(schema: Schema): string {
  if (schema.type === 'integer') return `a whole number from ${schema.minimum} to ${schema.maximum}`
  if (schema.enum !== undefined) return `one of ${schema.enum.join(', ')}`
  return `like ${[schema.examples].flat().join(' or ')}`
}

/**
 * The settings as others may see them: numbers and choices, and of each text only whether it is set. A text can be an address with a
 * password, a key, or a path with the name of a person.
 */
export function describeSettings(settings: Settings): Record<string, { isSet: boolean; value?: unknown }> {
  const names = Object.keys(schemas) as (keyof Settings)[]
  const described = names.map(name => {
    const { type, enum: choices, default: byDefault } = schemas[name]
    const isSet = settings[name] !== byDefault
    return [name, type === 'integer' || choices !== undefined ? { isSet, value: settings[name] } : { isSet }]
  })
  return Object.fromEntries(described)
}

/** The values of the settings that are secrets, or addresses that can have one. */
export function secretValues(settings: Settings): string[] {
  const names = Object.keys(schemas) as (keyof Settings)[]
  return names.filter(name => schemas[name].writeOnly).map(name => String(settings[name]))
}
