import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiError, Midmonth } from '../../packages/sdk/src/index.ts'
import { withPartsInPlace } from '../../src/contract/shared-parts.ts'
import { callerOf, type Document, type Operation, operationsOf } from '../../src/site/docs/openapi.ts'
import { samplesOf } from '../../src/site/docs/samples.ts'
import { type Harness, startHarness } from '../harness/harness.ts'
import { midmonthHere } from './program.ts'

const document: Document = withPartsInPlace(
  JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')),
)
const operations = operationsOf(document)

let harness: Harness
let address: string
let token: string
beforeAll(async () => {
  harness = await startHarness()
  address = await harness.app.listen({ host: '127.0.0.1', port: 0 })
  const memberId = await harness.addMember()
  const created = await harness.call('POST', '/v1/member-sessions', { body: { memberId, scope: 'withdraw' } })
  token = created.body.token
})
afterAll(() => harness.stop())

/** Runs a sample as pasted by a reader. */
async function run(code: string): Promise<{ status: number; body: string }> {
  const env = { PATH: process.env.PATH, MIDMONTH_URL: address, MIDMONTH_API_KEY: harness.key, TOKEN: token }
  const withStatus = code.replace('curl ', "curl -sS -w '\\n%{http_code}' ")
  const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', withStatus], { env })
  const [, body = '', status] = /^([\s\S]*)\n(\d{3})$/.exec(stdout) ?? []
  return { status: Number(status), body }
}

/** Runs a sample of the SDK with a client for the harness. */
async function runSdk(code: string): Promise<unknown> {
  const midmonth = new Midmonth({ apiKey: harness.key, baseUrl: address, retriesMax: 0 })
  const AsyncFunction = (async () => {}).constructor as FunctionConstructor
  return await new AsyncFunction('midmonth', code)(midmonth)
}

const curlOf = (operation: Operation) => samplesOf(operation, document)[0].code

const malformed = ['BadRequest', 'HeaderValidation', 'PathValidation', 'QueryValidation', 'BodyValidation']

// These operations delete data that the others need, so they come last.
const last = ['resetSandbox']
const ordered = operations.toSorted((a, b) => last.indexOf(a.operationId) - last.indexOf(b.operationId))

test('the reference has a curl request for every operation', () => {
  expect(operations.length).toBeGreaterThan(60)
  for (const operation of operations) {
    const code = curlOf(operation)
    expect(code, operation.operationId).toMatch(/^curl -X [A-Z]+ "\$MIDMONTH_URL\/[^{}"]+"/)
    expect(code.includes('--data-binary'), operation.operationId).toBe(operation.requestBody !== undefined)
  }
})

test.each(ordered.map(operation => [operation.operationId, operation] as const))(
  'the curl request of %s is well-formed: a sandbox refuses only its placeholders',
  async (_, operation) => {
    const { status, body } = await run(curlOf(operation))
    // The examples name resources that do not exist here or are in another state.
    expect([200, 201, 202, 400, 404, 409, 422], body).toContain(status)
    if (status < 400) return
    const codes = (JSON.parse(body) as { issues: { code: string }[] }).issues.map(({ code }) => code)
    for (const each of malformed) expect(codes, body).not.toContain(each)
  },
)

test('the reference has an SDK call for every partner operation, and each is well-formed', async () => {
  // A member’s page calls the other operations.
  for (const operation of ordered.filter(each => callerOf(each) !== 'token')) {
    const code = samplesOf(operation, document).find(({ title }) => title === 'the SDK')?.code ?? 'missing'
    const error = await runSdk(code).catch((error: unknown) => error)
    if (!(error instanceof Error)) continue
    expect(error, `${code}\n${error}`).toBeInstanceOf(ApiError)
    const { status, issues } = error as ApiError
    expect([400, 404, 409, 422], code).toContain(status)
    expect(
      issues.filter(({ code }) => malformed.includes(code)),
      code,
    ).toEqual([])
  }
})

test('the reference has a command for every partner operation, and each is well-formed', async () => {
  const samples = ordered
    .filter(each => callerOf(each) !== 'token')
    .map(
      operation => samplesOf(operation, document).find(({ title }) => title === 'the command line')?.code ?? 'missing',
    )
  expect(samples.length).toBeGreaterThan(60)
  for (const code of samples) {
    // Splits the command like a shell.
    const script = `midmonth() { printf '%s\\0' "$@"; }; ${code}`
    const { stdout: words } = await promisify(execFile)('bash', ['--norc', '-c', script])
    const settings = { MIDMONTH_URL: address, MIDMONTH_API_KEY: harness.key }
    const { code: exitCode, stdout, stderr } = await midmonthHere(words.split('\0').slice(0, -1), settings)
    // The examples name resources that do not exist here or are in another state.
    expect([0, 1], `${code}\n${stderr}`).toContain(exitCode)
    if (exitCode === 1) expect(stderr, code).toMatch(/, HTTP (400|404|409|422), request /)
    for (const each of malformed) expect(stderr, code).not.toContain(`${each}, HTTP`)
    if (exitCode === 0 && !code.includes('bankFiles.answer')) JSON.parse(stdout)
  }
}, 60_000)
