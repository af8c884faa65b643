import pino from 'pino'
import { outlineOf } from '../cli/outline.ts'
import { operatorCommands } from '../cli/run.ts'
import { buildApp } from '../src/app.ts'
import { systemClock } from '../src/clock.ts'
import { Settings } from '../src/config.ts'
import { documentText } from '../src/contract/document-text.ts'
import { exampleIssue } from '../src/contract/refusals.ts'
import type { Databases } from '../src/database/connect.ts'
import { installationMetrics } from '../src/diagnosis/installation-metrics.ts'
import { catalogue, type EventData, type EventType, eventTypes } from '../src/events/catalogue.ts'
import { type ProblemName, problems } from '../src/kernel/errors.ts'
import { exampleId } from '../src/kernel/ids.ts'
import { retentionKinds } from '../src/kernel/retention.ts'
import { processMetrics } from '../src/metrics/process-metrics.ts'
import { fixtures, provokeHeader, rows } from '../src/sandbox/test-values.ts'
import { createKeys, Sealer } from '../src/sealing/sealer.ts'
import type { Tier } from '../src/tiers/rules.ts'
import { withdrawComponent } from './component.ts'
import { operatorClient, sdkFiles } from './sdk.ts'
import { sdkNamesModule } from './sdk-names.ts'
import { describeTables } from './tables.ts'
import { memberTemplate } from './template.ts'

/** The content of every generated file, by its path in the repository. */
export async function generated(databases: Databases): Promise<Record<string, Buffer>> {
  const texts = await generatedTexts(databases)
  return {
    ...Object.fromEntries(Object.entries(texts).map(([file, text]) => [file, Buffer.from(text)])),
    'src/members/template.xlsx': await memberTemplate(),
  }
}

async function generatedTexts(databases: Databases): Promise<Record<string, string>> {
  const { openapi, representation, operatorOpenapi } = await openapiDocuments(databases)
  return {
    'src/database/tables.ts': await describeTables(databases.pool),
    'cli/outline.json': await commandOutlines(),
    'openapi.json': openapi,
    'openapi-representation.json': representation,
    'openapi-operator.json': operatorOpenapi,
    ...sdkFiles(JSON.parse(representation)),
    'packages/console/src/generated/operator.ts': operatorClient(
      JSON.parse(operatorOpenapi),
      JSON.parse(representation),
    ),
    'src/site/docs/sdk-names.ts': sdkNamesModule(),
    'src/site/member-page/midmonth-withdraw.js': await withdrawComponent(),
    'docs/reference/errors.md': errorTable(),
    'docs/reference/events.md': eventList(),
    'docs/reference/metrics.md': metricsTable(),
    'docs/reference/retention.md': retentionTable(),
    'docs/reference/settings.md': settingsTable(),
    'docs/reference/test-values.md': testValues(),
  }
}

async function openapiDocuments(databases: Databases) {
  const app = await buildApp({
    ...databases,
    log: pino({ level: 'silent' }),
    sealer: new Sealer(createKeys()),
    ...{ now: systemClock, mode: 'sandbox', bankOf: () => null },
  })
  const documents = {
    openapi: documentText(app.documents.partners()),
    representation: documentText(app.documents.representation()),
    operatorOpenapi: documentText(app.documents.operators()),
  }
  await app.close()
  return documents
}

/** The operators' commands, for completion. */
async function commandOutlines(): Promise<string> {
  const commands = operatorCommands.entries.map(async ({ load }) => outlineOf(await load()))
  return `${JSON.stringify(await Promise.all(commands), null, 1)}\n`
}

const retryWords = {
  yes: 'yes',
  no: 'no',
  'if-retry-after': 'with `retry-after`',
  'if-repeatable': 'if repeatable',
} as const

function errorTable(): string {
  const rows = (Object.keys(problems) as ProblemName[]).map(name => {
    const { order, code, status, retry, extra, when } = problems[name]
    return `| ${order} | \`${code}\` | ${status} | ${retryWords[retry]} | ${extra.map(field => `\`${field}\``).join(', ') || '–'} | ${when} |`
  })
  return `# Errors

Generated from src/kernel/errors.ts by \`npm run generate\`. Do not edit. \`GET /v1/errors\` returns the same table.

Every error response is a JSON object:

\`\`\`json
${JSON.stringify({ issues: [exampleIssue('MemberNotFound')] }, null, 2)}
\`\`\`

Branch on \`code\`, never on \`message\`. If two rows apply to a request, the row with the lower order is returned;
problems of path, query and body are reported together. A specific code shares the status of the generic code that it
specialises.

Every error response has \`x-should-retry\`. It is \`true\` if you should repeat the same request unchanged: the repetition
can succeed, and cannot take effect twice. The table says when:

- **yes**: nothing was done.
- **with \`retry-after\`**: \`true\` if the response has \`retry-after\`. A 409 for an idempotency key in progress has that
  header; a 409 for an expired intent does not. While withdrawals are paused, \`retry-after\` is several minutes, so decide
  how long your user waits.
- **if repeatable**: the request may have taken effect, or fail again. \`true\` for a GET and for a request with an
  idempotency key, so send one with every write.
- **no**: the same request would fail again. Change the request, or the state that causes the refusal.

Wait for \`retry-after\` if it is set. Otherwise back off exponentially with jitter. Limit the number of attempts.

| Order | Code | Status | Retry | Additional fields | When |
|---|---|---|---|---|---|
${rows.join('\n')}

## Provoking errors in a sandbox

[Test values](test-values.md) lists a request for every error; a sandbox returns them complete.

A request can provoke nearly every error: by its values, after earlier requests, or with the account numbers
of [the simulated bank](simulated-bank.md). Three codes need the operator's commands, which work on a running sandbox and
take effect within a second. \`midmonth partner list\` shows the partner's id.

| Code | Trigger | Undo |
|---|---|---|
| \`UnprocessableEntity\` (422, from an intent or its completion) | \`midmonth partner pause par_…\` | \`midmonth partner resume par_…\` |
| \`Forbidden\` (403, from any operation) | \`midmonth partner suspend par_…\` | \`midmonth partner restore par_…\` |
| \`Forbidden\` (403, from operations beyond the key's scopes) | \`midmonth key create par_… --scopes members:read\`, and use that key for a withdrawal | – |
| \`InternalServerError\` (503, with \`retry-after\`) | Run the sandbox on your own PostgreSQL (\`DATABASE_URL\`), and stop it | Start it again |
| \`InternalServerError\` (500) | This is a bug in Midmonth, so only the header \`${provokeHeader}\` provokes it. Treat it like the 503: repeat the request with its idempotency key, with back-off | – |
`
}

function testValues(): string {
  const tier: Tier = {
    ...{ name: 'Silver', version: 1, currency: 'GBP', feeFixed: 50n, feeBps: 0, feeMin: null, feeMax: null },
    ...{ feePayer: 'member', lowerLimit: 1_000n, upperLimit: 20_000n },
    ...{ withdrawalsPerDay: null, withdrawalsPerCycle: null, payoutSpeed: null },
  }
  const lines = rows.map(({ reaches, needs, note, request }) => {
    const { method, path, headers = {}, body } = request({ id: '…', email: 'a new e-mail' }, tier)
    const what =
      'problem' in reaches
        ? `\`${problems[reaches.problem].code}\` (${problems[reaches.problem].status})`
        : `${reaches.entity}: \`${reaches.from}\` → \`${reaches.to}\``
    const named = Object.entries(headers).map(([name, value]) => `\`${name}: ${value.slice(0, 40)}\``)
    const sent = [`\`${method} ${path}\``, ...named, ...(body === undefined ? [] : [`\`${JSON.stringify(body)}\``])]
    return `| ${what} | ${sent.join(', ')} | ${fixtures[needs]} | ${note} |`
  })
  return `# Test values

Generated from src/sandbox/test-values.ts by \`npm run generate\`. Do not edit.

On a sandbox, \`GET /v1/sandbox/test-values\` returns these requests complete, with ids and amounts of your partner: each
can be sent once, unchanged, with your key. The call creates everything that they need, including members whose e-mail
begins with \`test-value-\`; [reset the sandbox](../guides/sandbox.md) to remove them. The bank accounts by outcome are on
the page about [the simulated bank](simulated-bank.md).

The header \`${provokeHeader}\` makes a sandbox refuse any request with an error that a single request cannot cause. A live
installation ignores the header.

| Reaches | Request | Needs | Note |
|---|---|---|---|
${lines.join('\n')}
`
}

function eventList(): string {
  const rows = eventTypes.map(type => {
    const { when, data } = catalogue[type]
    return `| \`${type}\` | ${when} | ${fieldsOf(data)} |`
  })
  return `# Events

Generated from src/events/catalogue.ts by \`npm run generate\`. Do not edit. The schema of each type's \`data\` is in openapi.json.

\`GET /v1/events\` returns the state changes of the last 30 days, oldest first:

\`\`\`json
${JSON.stringify(exampleEvent, null, 2)}
\`\`\`

- \`sequence\` grows by one with each event of the same resource. \`timestamp\` is the time of the event; \`createdAt\` is
  the same instant.
- To continue, pass the \`lastEventId\` of the last response as \`after\`. It is the id of the response's last event, or
  your own \`after\` if there were no events. No event is missed or repeated, however many requests run at once.
- To start at the end, read once with \`from=now\`. The response has no events, only a \`lastEventId\` to continue from. If
  that is null, the feed is empty: continue without \`after\`.
- \`types\` (repeated) selects types. An unknown type is a \`QueryValidation\` issue.
- New types may be added. Ignore types that you do not know.

| Type | When | \`data\` |
|---|---|---|
${rows.join('\n')}

\`amount\`, \`fee\`, \`netAmount\`, \`free\` and \`floor\` are Money: \`{ "amount": 5000, "currency": "GBP" }\`. Fields marked \`?\` are optional.
`
}

function fieldsOf({ properties, required = [] }: { properties: object; required?: string[] }): string {
  return Object.keys(properties)
    .map(name => `\`${name}${required.includes(name) ? '' : '?'}\``)
    .join(', ')
}

const exampleEvent = {
  id: exampleId('event'),
  type: 'pay_run.available',
  timestamp: '2026-03-31T09:30:00.000Z',
  createdAt: '2026-03-31T09:30:00.000Z',
  sequence: 2,
  data: { payRunId: exampleId('payRun'), payCycleId: exampleId('payCycle'), status: 'Available' },
} satisfies { type: EventType; data: EventData<'pay_run.available'>; [field: string]: unknown }

function retentionTable(): string {
  const rows = Object.values(retentionKinds).map(({ what, holds, after, days, setting, reason }) => {
    const bounds = setting === null ? 'fixed' : `\`${setting.name}\`, ${setting.min} to ${setting.max}`
    return `| ${what.charAt(0).toUpperCase()}${what.slice(1)} | ${holds} | ${days} days after ${after} | ${bounds} | ${reason} |`
  })
  return `# Retention

Generated from src/kernel/retention.ts by \`npm run generate\`. Do not edit. The worker removes what is older within minutes.
\`midmonth status\` says what was removed last, and \`midmonth doctor\` warns of data that is still there a day later. Backups keep what they
contain until they are deleted.

| Data | Holds | Kept by default | Setting | Reason |
|---|---|---|---|---|
${rows.join('\n')}

An expired or cancelled intent that was removed is a \`NotFound\`.
`
}

function metricsTable(): string {
  const table = (metrics: readonly { name: string; help: string; labelNames: readonly string[] }[]) =>
    [
      '| Name | Labels | Meaning |\n|---|---|---|',
      ...metrics.map(
        ({ name, help, labelNames }) =>
          `| \`${name}\` | ${labelNames.map(label => `\`${label}\``).join(', ') || '–'} | ${help} |`,
      ),
    ].join('\n')
  return `# Metrics

Generated from src/metrics/process-metrics.ts and src/diagnosis/installation-metrics.ts by \`npm run generate\`. Do not edit.

[Running Midmonth](../operations/running.md) says where \`GET /metrics\` is served. Names that end with \`_total\` are counters, and
\`midmonth_http_request_duration_seconds\`, \`midmonth_batch_commands\` and \`midmonth_task_duration_seconds\` are histograms; the others are
gauges. Amounts are in minor units, and timestamps in seconds since 1970. A gauge without a value is left out.

## Of each process

The metrics of the runtime, such as \`process_resident_memory_bytes\` and \`nodejs_eventloop_lag_p99_seconds\`, are those of
[prom-client](https://github.com/siimon/prom-client).

${table(Object.values(processMetrics))}

## Of the installation

These are the same in each process, except for \`midmonth_clock_offset_seconds\`: take their \`max\`. They are left out while
the database cannot be read.

${table(installationMetrics)}
`
}

function settingsTable(): string {
  const rows = Object.entries(Settings.properties).map(([name, schema]) => {
    const { default: value, description } = schema as { default?: unknown; description?: string }
    return `| \`${name}\` | ${value === '' || value === undefined ? '–' : `\`${value}\``} | ${description ?? ''} |`
  })
  return `# Settings

Generated from src/config.ts by \`npm run generate\`. Do not edit. All settings come from the environment. The program refuses
to start with an invalid or unknown setting, and names it.

| Name | Default | Meaning |
|---|---|---|
${rows.join('\n')}
`
}
