import type pg from 'pg'
import pino from 'pino'
import { buildApp } from '../src/app.ts'
import { Settings } from '../src/config.ts'
import type { Db } from '../src/db.ts'
import { type ProblemName, problems } from '../src/errors.ts'
import { exampleIssue } from '../src/http/operation.ts'
import { systemClock } from '../src/main.ts'
import { describeTables } from './tables.ts'
import { memberTemplate } from './template.ts'

/** What every generated file holds, by its path in the repository. */
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

Generated from src/errors.ts by \`npm run generate\`. Do not edit. \`GET /v1/errors\` answers the same table.

Every refusal is one JSON object:

\`\`\`json
${JSON.stringify({ issues: [exampleIssue('MemberNotFound')] }, null, 2)}
\`\`\`

Branch on \`code\`, never on \`message\`. When two rows apply to one request, the one with the lower order is the answer;
validation problems of path, query and body are answered together. A specific code shares the status of the generic code
that it specialises.

| Order | Code | Status | Further fields | When |
|---|---|---|---|---|
${rows.join('\n')}
`
}

function settingsTable(): string {
  const rows = Object.entries(Settings.properties).map(([name, schema]) => {
    const { default: value, description } = schema as { default?: unknown; description?: string }
    return `| \`${name}\` | ${value === '' ? '–' : `\`${value}\``} | ${description ?? ''} |`
  })
  return `# Settings

Generated from src/config.ts by \`npm run generate\`. Do not edit. All settings come from the environment; an odd value stops
the start with a sentence that names it.

| Name | Default | Meaning |
|---|---|---|
${rows.join('\n')}
`
}
