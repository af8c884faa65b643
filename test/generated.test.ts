import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { generated } from '../scripts/generated.ts'
import { type Harness, startHarness } from './harness/harness.ts'

let harness: Harness
let files: Record<string, Buffer>
beforeAll(async () => {
  harness = await startHarness()
  files = await generated({ ...harness, close: harness.stop })
})
afterAll(() => harness.stop())

test.each([
  'cli/outline.json',
  'openapi.json',
  'openapi-operator.json',
  'openapi-representation.json',
  'docs/reference/errors.md',
  'docs/reference/events.md',
  'docs/reference/metrics.md',
  'docs/reference/retention.md',
  'docs/reference/sdk.md',
  'docs/reference/settings.md',
  'docs/reference/test-values.md',
  'packages/console/src/generated/operator.ts',
  'packages/sdk/src/generated/decimals.ts',
  'packages/sdk/src/generated/errors.ts',
  'packages/sdk/src/generated/operations.ts',
  'packages/sdk/src/generated/schemas.ts',
  'src/site/docs/sdk-names.ts',
  'src/database/tables.ts',
])('%s is up to date with the code and migrations (otherwise run npm run generate)', file => {
  expect(readFileSync(new URL(`../${file}`, import.meta.url), 'utf8')).toBe(String(files[file]))
})

test('the Excel template is up to date with its script (otherwise run npm run generate)', () => {
  const committed = readFileSync(new URL('../src/members/template.xlsx', import.meta.url))
  expect(committed.equals(files['src/members/template.xlsx'] ?? Buffer.of())).toBe(true)
})

test('these tests cover every generated file', () => {
  expect(Object.keys(files).sort()).toEqual([
    'cli/outline.json',
    'docs/reference/errors.md',
    'docs/reference/events.md',
    'docs/reference/metrics.md',
    'docs/reference/retention.md',
    'docs/reference/sdk.md',
    'docs/reference/settings.md',
    'docs/reference/test-values.md',
    'openapi-operator.json',
    'openapi-representation.json',
    'openapi.json',
    'packages/console/src/generated/operator.ts',
    'packages/sdk/src/generated/decimals.ts',
    'packages/sdk/src/generated/errors.ts',
    'packages/sdk/src/generated/operations.ts',
    'packages/sdk/src/generated/schemas.ts',
    'src/database/tables.ts',
    'src/members/template.xlsx',
    'src/site/docs/sdk-names.ts',
    'src/site/member-page/midmonth-withdraw.js',
  ])
})

test.each([
  ['/openapi.json', 'openapi.json'],
  ['/openapi.json?prefer=representation', 'openapi-representation.json'],
  ['/operator/openapi.json', 'openapi-operator.json'],
])('the service serves the committed document at %s', async (address, file) => {
  const { statusCode, body, headers } = await harness.app.inject(address)
  expect(statusCode).toBe(200)
  expect(headers['content-type']).toBe('application/json; charset=utf-8')
  expect(body).toBe(String(files[file]))
})
