import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { fstatSync, readdirSync, readlinkSync, readSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import net from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import pino from 'pino'
import { Type } from 'typebox'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'
import { extent } from '../../../test/runner/extent.ts'
import { named, operationsOn } from '../operation.ts'
import { registerOperations } from '../register.ts'
import { createServer } from '../server/create-server.ts'
import type { App } from '../server/server.ts'
import { chunksOf, openNameless, removeLeftBehind } from './uploaded-file.ts'

const megabyte = 1024 * 1024
const fileBytesMax = extent({ short: 16, long: 100 }) * megabyte

let harness: Harness
let app: App
let url: string
// The content of the last file, and the way it was stored.
let onRead: (() => Promise<void>) | undefined
let seen: { text: string; mode: number; names: number; idleMsMax: number | undefined } | undefined

beforeAll(async () => {
  // A separate folder, so that it contains only the uploads of this test.
  vi.stubEnv('TMPDIR', await mkdtemp(path.join(tmpdir(), 'upload-test-')))
  harness = await startHarness()
  app = createServer({
    db: harness.db,
    log: pino({ level: 'silent' }),
    now: harness.clock.now,
    mode: harness.mode,
    sealer: harness.sealer,
  })
  // Uploads keep their connection open for longer.
  let connection: net.Socket | undefined
  app.addHook('preHandler', async ({ raw }) => {
    connection = raw.socket
  })
  const { operation } = operationsOn<Pick<Harness, 'db'>>()
  const uploadList = operation({
    route: 'PUT /v1/lists',
    scope: 'members:write',
    tag: 'Service',
    summary: 'Upload a list',
    fileBody: { name: 'ListFile', description: 'A list.', example: 'email\r\nsam.okafor@example.com\r\n' },
    fileBytesMax,
    success: { description: 'The received file.', schema: Type.Object({}) },
    async run({ file }, { write }) {
      const start = Buffer.alloc(100)
      await file.lend(async fd => {
        await onRead?.()
        onRead = undefined
        const { mode, nlink } = fstatSync(fd)
        const text = start.toString('latin1', 0, readSync(fd, start, 0, start.length, 0))
        seen = { text, mode: mode & 0o777, names: nlink, idleMsMax: connection?.timeout }
      })
      return await write(async () => ({ body: { kind: file.kind, bytes: file.bytes, sha256: file.sha256 } }))
    },
  })
  registerOperations(app, { db: harness.db }, named({ uploadList }))
  await app.ready()
  url = await app.listen({ host: '127.0.0.1', port: 0 })
})
afterAll(async () => {
  await app.close()
  await harness.stop()
  await rm(tmpdir(), { recursive: true })
  vi.unstubAllEnvs()
})

test('a connection is not closed as idle while a large file is being processed', async () => {
  const headers = { 'x-api-key': harness.key, 'content-type': 'text/csv' }
  await fetch(`${url}/v1/lists`, { method: 'PUT', headers, body: csv })
  expect(seen?.idleMsMax).toBe(10 * 60_000)
})

const csv = 'email,first_name\r\nsam.okafor@example.com,Sam\r\n'
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const xlsxType = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'

async function put(
  body: string | FormData | Buffer | ReadableStream | undefined,
  headers: Record<string, string> = {},
) {
  const request = {
    method: 'PUT',
    ...(body === undefined ? {} : { body }),
    headers: { 'x-api-key': harness.key, ...headers },
    duplex: 'half',
  } as const
  const answer = await fetch(`${url}/v1/lists`, request as RequestInit)
  return { status: answer.status, headers: answer.headers, body: JSON.parse(await answer.text()) }
}

describe('a file', () => {
  test.each([
    ['text/csv', 'csv'],
    ['Text/CSV; charset="UTF-8"; header=present', 'csv'],
    [xlsxType, 'xlsx'],
  ])('of %s is stored unlinked on disk while the request is handled, and is gone afterwards', async (type, kind) => {
    const { status, body } = await put(csv, { 'content-type': type })
    expect([status, body]).toEqual([200, { kind, bytes: csv.length, sha256: sha256(csv) }])
    expect(seen).toMatchObject({ text: csv, mode: 0o600, names: 0 })
    await gone()
  })

  test('may be sent in a form, and its name decides its kind if its media type does not', async () => {
    for (const [name, type, kind] of [
      ['list.bin', 'text/csv', 'csv'],
      ['list.CSV', '', 'csv'],
      ['list.csv', 'application/vnd.ms-excel', 'csv'],
      ['list.xlsx', 'application/octet-stream', 'xlsx'],
      ['list', xlsxType, 'xlsx'],
    ] as const) {
      const { status, body } = await put(form(['file', new File([csv], name, { type })]))
      expect([status, body]).toEqual([200, { kind, bytes: csv.length, sha256: sha256(csv) }])
      await gone()
    }
  })

  test('of many megabytes arrives whole', async () => {
    const text = `email\r\n${'sam.okafor@example.com\r\n'.repeat(500_000)}`
    for (const body of [text, form(['file', new File([text], 'list.csv')])]) {
      const headers: Record<string, string> = typeof body === 'string' ? { 'content-type': 'text/csv' } : {}
      expect((await put(body, headers)).body).toEqual({ kind: 'csv', bytes: text.length, sha256: sha256(text) })
    }
  })

  test('sent twice with one key is one request, with or without a form; another file is another request', async () => {
    const key = { 'x-idempotency-key': 'the-march-list' }
    expect((await put(csv, { ...key, 'content-type': 'text/csv' })).headers.get('idempotency-replayed')).toBe(null)
    for (const [body, headers] of [
      [csv, { 'content-type': 'text/csv' }],
      [form(['file', new File([csv], 'list.csv')]), {}],
    ] as const) {
      const again = await put(body, { ...key, ...headers })
      expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([200, 'true'])
    }
    expect((await put(`${csv}x`, { ...key, 'content-type': 'text/csv' })).status).toBe(422)
    expect((await put(csv, { ...key, 'content-type': xlsxType })).status).toBe(422)
  })

  test('whose sender disconnects in the middle leaves nothing behind', async () => {
    await expect.poll(uploads).toEqual([])
    const socket = net.connect({ host: '127.0.0.1', port: Number(new URL(url).port) })
    socket.write(
      `PUT /v1/lists HTTP/1.1\r\nHost: x\r\nx-api-key: ${harness.key}\r\nContent-Type: text/csv\r\nContent-Length: 1000\r\n\r\nemail`,
    )
    await expect.poll(uploads).toHaveLength(1)
    // The files that SIGKILL would leave behind.
    expect(await readdir(tmpdir())).toEqual([])
    socket.destroy()
    await expect.poll(uploads).toEqual([])
  })

  test('stays open for its reader when the caller disconnects', async () => {
    const { promise: reading, resolve: begin } = Promise.withResolvers<void>()
    const { promise: reopened, resolve: end } = Promise.withResolvers<void>()
    onRead = async () => {
      begin()
      await reopened
    }
    const socket = net.connect({ host: '127.0.0.1', port: Number(new URL(url).port) })
    socket.write(
      `PUT /v1/lists HTTP/1.1\r\nHost: x\r\nx-api-key: ${harness.key}\r\nContent-Type: text/csv\r\nContent-Length: ${csv.length}\r\n\r\n${csv}`,
    )
    await reading
    const closed = once(socket, 'close')
    socket.destroy()
    await closed
    // The server has handled another request since, so it has noticed the disconnect.
    await fetch(`${url}/v1/nothing`, { headers: { 'x-api-key': harness.key } })
    expect(uploads()).toHaveLength(1)
    seen = undefined
    end()
    await gone()
    expect(seen).toMatchObject({ text: csv })
  })

  test('left by an earlier process is removed at startup, regardless of its age', async () => {
    await mkdir(path.join(tmpdir(), 'midmonth-upload-old'))
    await writeFile(path.join(tmpdir(), 'midmonth-upload-old', 'body'), csv)
    await writeFile(path.join(tmpdir(), 'midmonth-upload-new'), csv)
    await writeFile(path.join(tmpdir(), 'other'), '')
    await removeLeftBehind()
    expect(await readdir(tmpdir())).toEqual(['other'])
    await rm(path.join(tmpdir(), 'other'))
  })
})

describe('a body that is not an acceptable file', () => {
  test.each([
    ['another media type', 'application/pdf', 415, /send text\/csv/],
    ['no media type', '', 415, /send text\/csv/],
    ['another charset', 'text/csv; charset=utf-16', 415, /UTF-8/],
    ['a workbook with macros', 'application/vnd.ms-excel.sheet.macroEnabled.12', 415, /save the file as \.xlsx/],
    ['an old workbook', 'application/vnd.ms-excel', 415, /save the file as \.xlsx/],
    ['a form without a boundary', 'multipart/form-data', 400, /multipart/],
    ['a malformed form', 'multipart/form-data; boundary=x', 400, /multipart/],
  ])('%s is refused in the contract’s shape', async (_, type, status, message) => {
    const answer = await put(Buffer.from(csv), type === '' ? {} : { 'content-type': type })
    expect([answer.status, answer.body.issues]).toEqual([
      status,
      [{ code: 'BadRequest', message: expect.stringMatching(message) }],
    ])
  })

  test('an empty file is reported as the body', async () => {
    for (const answer of [
      await put('', { 'content-type': 'text/csv' }),
      await put(form(['file', new File([], 'list.csv')])),
    ]) {
      expect(answer.status).toBe(400)
      expect(answer.body.issues).toEqual([{ code: 'BodyValidation', message: 'The file is empty', path: 'body' }])
    }
  })

  test('a form is one file and nothing else', async () => {
    const file = () => new File([csv], 'list.csv')
    for (const body of [
      form(['file', file()], ['other', file()]),
      form(['file', file()], ['dryRun', 'true']),
      form(['dryRun', 'true'], ['file', file()]),
      form(['file', csv]),
      form(),
    ]) {
      const answer = await put(body)
      expect(answer.status).toBe(400)
      expect(['BodyValidation', 'BadRequest']).toContain(answer.body.issues[0].code)
    }
  })

  test('in a form, other kinds of files are refused with advice', async () => {
    for (const [name, type, message] of [
      ['list.pdf', 'application/pdf', /must be CSV/],
      ['list.xls', 'application/vnd.ms-excel', /save the file as \.xlsx/],
      ['list.xlsm', 'application/octet-stream', /macros/],
      ['list', '', /must be CSV/],
    ] as const) {
      const answer = await put(form(['file', new File([csv], name, { type })]))
      expect([answer.status, answer.body.issues[0].message]).toEqual([415, expect.stringMatching(message)])
    }
  })

  test('a truncated form is refused', async () => {
    const body = '--x\r\ncontent-disposition: form-data; name="file"; filename="list.csv"\r\n\r\nemail\r\n'
    const answer = await put(body, { 'content-type': 'multipart/form-data; boundary=x' })
    expect([answer.status, answer.body.issues[0].message]).toEqual([400, expect.stringMatching(/multipart/)])
  })

  test('JSON or an empty body is refused: the body must be a file', async () => {
    for (const [body, headers] of [
      ['{}', { 'content-type': 'application/json' }],
      [undefined, {}],
    ] as const) {
      const answer = await put(body, headers)
      expect(answer.status).toBe(400)
      expect(answer.body.issues).toEqual([
        { code: 'BodyValidation', message: expect.stringMatching(/^The body must be a file/), path: 'body' },
      ])
    }
  })

  test('a file beyond the limit is refused, with or without a declared length, and is not kept', async () => {
    const answers = await Promise.all([
      put(Buffer.alloc(fileBytesMax + 20_000, 'x'), { 'content-type': 'text/csv' }),
      put(megabytes(fileBytesMax / megabyte + 1), { 'content-type': 'text/csv' }),
    ])
    for (const { status, body } of answers) {
      expect(status).toBe(413)
      expect(body.issues).toEqual([{ code: 'BadRequest', message: `The file must not exceed ${fileBytesMax} bytes` }])
    }
    await expect.poll(uploads).toEqual([])
  })

  test('a body that never ends is cut off', async () => {
    const answer = put(megabytes(Number.POSITIVE_INFINITY), { 'content-type': 'text/csv' })
    // The response, or the end of the connection: a caller that never stops writing may miss the response.
    expect(await answer.then(({ status }) => status).catch(() => 'ended')).toBeOneOf([413, 'ended'])
  })
})

test('the OpenAPI document lists the three ways to send a file', () => {
  const { paths, components } = harness.app.documents.partners() as unknown as Document
  const { requestBody } = paths['/v2/members/jobs/csv'].put
  const file = { $ref: '#/components/schemas/MembersFile' }
  expect(components.schemas.MembersFile).toMatchObject({ type: 'string', format: 'binary' })
  expect(requestBody.content).toMatchObject({
    'text/csv': { schema: file },
    [xlsxType]: { schema: file },
    'multipart/form-data': { schema: { type: 'object', required: ['file'], properties: { file } } },
  })
})
type Document = {
  paths: { '/v2/members/jobs/csv': { put: { requestBody: { content: Record<string, object> } } } }
  components: { schemas: { MembersFile: object } }
}

function form(...parts: [name: string, value: string | File][]): FormData {
  const data = new FormData()
  for (const [name, value] of parts) typeof value === 'string' ? data.append(name, value) : data.append(name, value)
  return data
}

function megabytes(count: number): ReadableStream {
  let sent = 0
  return new ReadableStream({
    pull(controller) {
      if (sent++ < count) controller.enqueue(new Uint8Array(megabyte))
      else controller.close()
    },
  })
}

/** The files in the temporary folder that this process has open, with or without a name. */
function uploads(): string[] {
  return readdirSync('/proc/self/fd')
    .map(fd => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`)
      } catch {
        // Closed in the meantime.
        return ''
      }
    })
    .filter(file => file.startsWith(tmpdir()))
}

async function gone(): Promise<void> {
  await expect.poll(uploads).toEqual([])
  expect(await readdir(tmpdir())).toEqual([])
}

test('a reader of an open file that stops early leaves it open, for the next reader and for its owner', async () => {
  const handle = await openNameless()
  const text = 'row\n'.repeat(50_000)
  await handle.write(text)
  for await (const chunk of chunksOf(handle.fd)) {
    expect(chunk.length).toBeGreaterThan(0)
    break
  }
  const chunks: Uint8Array[] = []
  for await (const chunk of chunksOf(handle.fd)) chunks.push(chunk)
  expect(Buffer.concat(chunks).toString()).toBe(text)
  expect(chunks.length).toBeGreaterThan(1)
  await handle.close()
})
