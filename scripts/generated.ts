import type pg from 'pg'
import pino from 'pino'
import { buildApp } from '../src/app.ts'
import { Settings } from '../src/config.ts'
import type { Db } from '../src/db.ts'
import { type ProblemName, problems } from '../src/errors.ts'
import { catalogue, type EventData, type EventType, eventTypes } from '../src/events/catalogue.ts'
import { exampleIssue } from '../src/http/operation.ts'
import { exampleId } from '../src/ids.ts'
import { systemClock } from '../src/main.ts'
import { describeTables } from './tables.ts'
import { memberTemplate } from './template.ts'

/** The content of every generated file, by path in the repository. */
export async function generated(db: Db, pool: pg.Pool): Promise<Record<string, Buffer>> {
  const texts = await generatedTexts(db, pool)
  return {
    ...Object.fromEntries(Object.entries(texts).map(([file, text]) => [file, Buffer.from(text)])),
    'src/members/template.xlsx': await memberTemplate(),
  }
}

async function generatedTexts(db: Db, pool: pg.Pool): Promise<Record<string, string>> {
  return {
    'src/tables.ts': await describeTables(pool),
    'openapi.json': await openapiDocument(db, pool),
    'docs/errors.md': errorTable(),
    'docs/events.md': eventList(),
    'docs/operations/settings.md': settingsTable(),
  }
}

async function openapiDocument(db: Db, pool: pg.Pool): Promise<string> {
  const app = await buildApp({
    ...{ db, batchDb: db, pool, log: pino({ level: 'silent' }) },
    ...{ now: systemClock, mode: 'sandbox', hasRail: true },
  })
  const text = `${JSON.stringify(app.swagger(), null, 2)}\n`
  await app.close()
  return text
}

function errorTable(): string {
  const rows = (Object.keys(problems) as ProblemName[]).map(name => {
    const { order, code, status, extra, when } = problems[name]
    return `| ${order} | \`${code}\` | ${status} | ${extra.map(field => `\`${field}\``).join(', ') || '–'} | ${when} |`
  })
  return `# Errors

Generated from src/errors.ts by \`npm run generate\`. Do not edit. \`GET /v1/errors\` returns the same table.

Every error response is a JSON object:

\`\`\`json
${JSON.stringify({ issues: [exampleIssue('MemberNotFound')] }, null, 2)}
\`\`\`

Branch on \`code\`, never on \`message\`. If several rows apply to a request, the one with the lowest order is returned.
Validation issues of path, query and body are returned together. A specific code has the same status as the generic code
that it refines.

| Order | Code | Status | Additional fields | When |
|---|---|---|---|---|
${rows.join('\n')}

## Testing errors in a sandbox

Most errors can be triggered by requests alone: by their values, by the state that earlier requests have left, or by the
account numbers of the simulated bank ([payouts.md](payouts.md)). The others need the operator. The commands below work on a
running sandbox and take effect within a second. \`openwage partner list\` shows the partner's id.

| Code | Trigger | Undo |
|---|---|---|
| \`UnprocessableEntity\` (422, from an intent or its completion) | \`openwage partner pause par_…\` | \`openwage partner resume par_…\` |
| \`Forbidden\` (403, from any operation) | \`openwage partner suspend par_…\` | \`openwage partner restore par_…\` |
| \`Forbidden\` (403, from operations beyond the key's scopes) | \`openwage key create par_… --scopes members:read\`, then use that key for a withdrawal | |
| \`InternalServerError\` (503, with \`retry-after\`) | Run the sandbox on your own PostgreSQL (\`DATABASE_URL\`) and stop it | Start it again |
| \`InternalServerError\` (500) | Cannot be triggered: it is a bug in Openwage. Handle it like a 503, and retry with the same idempotency key | |
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

- \`sequence\` increases by one with each event of the same resource. \`timestamp\` is when the event happened; \`createdAt\` has
  the same value.
- To continue, pass the \`lastEventId\` of a response as \`after\`. It is the id of the last event in the response; if there are
  no events, it is the \`after\` of your request. No event is missed or repeated, even while concurrent requests write new ones.
- To skip past events, read once with \`from=now\`: the response has no events, only the \`lastEventId\` to continue from. If it is
  null, the feed is empty: continue without \`after\`.
- \`types\` (repeatable) filters by type. An unknown type is a \`QueryValidation\` issue.
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

function settingsTable(): string {
  const rows = Object.entries(Settings.properties).map(([name, schema]) => {
    const { default: value, description } = schema as { default?: unknown; description?: string }
    return `| \`${name}\` | ${value === '' || value === undefined ? '–' : `\`${value}\``} | ${description ?? ''} |`
  })
  return `# Settings

Generated from src/config.ts by \`npm run generate\`. Do not edit. All settings are environment variables. If one is invalid,
Openwage does not start and the error message names it.

| Name | Default | Meaning |
|---|---|---|
${rows.join('\n')}
`
}
