import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import pino from 'pino'
import { Type } from 'typebox'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness.ts'
import { documentation } from './documentation.ts'
import { once as onceByKey } from './once.ts'
import { operation } from './operation.ts'
import { type App, createServer } from './server.ts'
import { acceptUploads, UploadedFile } from './upload.ts'

let harness: Harness
let app: App
let url: string
// Where the last file lay, and what it held while it was there.
let seen: { path: string; text: string; mode: number } | undefined

beforeAll(async () => {
  harness = await startHarness()
  app = createServer({ db: harness.db, log: pino({ level: 'silent' }), now: harness.clock.now, mode: harness.mode })
  await documentation(app)
  app.register(async (scope: App) => {
    acceptUploads(scope)
    const schema = operation({
      id: 'uploadList',
      tag: 'Service',
      summary: 'Upload a list',
      fileBody: { description: 'A list.', example: 'email\r\nsam.okafor@example.com\r\n' },
      success: { status: 200, description: 'What came.', schema: Type.Object({}) },
    })
    scope.put('/v1/lists', { config: { scope: 'members:write' }, schema }, async (request, reply) => {
      const file = request.body
      if (!(file instanceof UploadedFile)) throw new Error('validation let something else through')
      seen = { path: file.path, text: readFileSync(file.path, 'latin1').slice(0, 100), mode: 0 }
      return await onceByKey(harness.db, request, reply, async () => ({
        status: 200,
        body: { kind: file.kind, bytes: file.bytes, sha256: file.sha256 },
      }))
    })
    const json = operation({
      id: 'postThing',
      tag: 'Service',
      summary: 'Takes JSON',
      body: Type.Object({}),
      success: { status: 200, description: 'Fine.', schema: Type.Object({}) },
    })
    scope.post('/v1/things', { config: { scope: 'members:write' }, schema: json }, async () => ({}))
  })
  await app.ready()
  url = await app.listen({ host: '127.0.0.1', port: 0 })
})
afterAll(async () => {
  await app.close()
  await harness.stop()
})

const csv = 'email,first_name\r\nsam.okafor@example.com,Sam\r\n'
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const xlsxType = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'

async function put(body: string | FormData | Buffer | ReadableStream, headers: Record<string, string> = {}) {
  const request = { method: 'PUT', body, headers: { 'x-api-key': harness.key, ...headers }, duplex: 'half' } as const
  const answer = await fetch(`${url}/v1/lists`, request as RequestInit)
  return { status: answer.status, headers: answer.headers, body: JSON.parse(await answer.text()) }
}

describe('a file', () => {
  test('comes as CSV or XLSX, lies on the disk while the request is answered, and is gone behind it', async () => {
    for (const [type, kind] of [
      ['text/csv', 'csv'],
      ['text/csv; charset=utf-8', 'csv'],
      ['Text/CSV; charset="UTF-8"; header=present', 'csv'],
      [xlsxType, 'xlsx'],
    ] as const) {
      const { status, body } = await put(csv, { 'content-type': type })
      expect([status, body]).toEqual([200, { kind, bytes: csv.length, sha256: sha256(csv) }])
      expect(seen?.text).toBe(csv)
      await gone()
    }
  })
})

async function gone(): Promise<void> {
  await expect.poll(() => existsSync(path.dirname(seen?.path ?? ''))).toBe(false)
}
