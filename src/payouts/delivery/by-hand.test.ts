import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { putByHand } from './by-hand.ts'
import { NotDelivered } from './delivery.ts'

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'midmonth-by-hand-'))
  file = path.join(folder, 'batch.xml')
})
afterEach(() => rmSync(folder, { recursive: true }))

async function* chunks(...parts: string[]) {
  yield* parts
}
const thrownBy = async (call: Promise<unknown>): Promise<Error> =>
  await call.then(
    () => expect.unreachable(),
    error => error,
  )

test('a file that an operator carries is there whole, readable only by us, and a repeated export finds it', async () => {
  // sha256 of 'abcdef'.
  const written = { sha256: 'bef57ec7f53a6d40beb640a780a639c83bc29ac8a9816f1fc6c5c6dcd93c4721', size: 6 }
  expect(await putByHand(file, chunks('abc', 'def'))).toEqual(written)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(await putByHand(file, chunks('abcdef'))).toEqual(written)
  expect(readFileSync(file, 'utf8')).toBe('abcdef')
  expect(readdirSync(folder)).toEqual(['batch.xml'])
})

test('another file of the same name is kept, and the batch may be with the bank', async () => {
  writeFileSync(file, 'earlier')
  const error = await thrownBy(putByHand(file, chunks('later')))
  expect(error.message).toMatch(/exists with other bytes; find out whether it went to the bank/)
  expect(error).not.toBeInstanceOf(NotDelivered)
  expect(readFileSync(file, 'utf8')).toBe('earlier')
  expect(readdirSync(folder)).toEqual(['batch.xml'])
})

test('a file that cannot be written leaves nothing, and it is certain that the bank does not have it', async () => {
  async function* broken() {
    yield 'half'
    throw new Error('The database is gone')
  }
  const error = await thrownBy(putByHand(file, broken()))
  expect(error).toBeInstanceOf(NotDelivered)
  expect(error.message).toBe('The file was not written, and the batch was not sent: The database is gone')
  expect(readdirSync(folder)).toEqual([])
  expect(await thrownBy(putByHand(path.join(folder, 'missing', 'batch.xml'), chunks('a')))).toBeInstanceOf(NotDelivered)
})
