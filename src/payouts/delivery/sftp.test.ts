import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { SealFile } from './sealed-file.ts'
import { SftpDelivery, type SftpOptions } from './sftp.ts'
import { BankServer, newKeyPair } from './sftp-server.fixture.ts'

const client = newKeyPair()
// What the caller seals with is not the folder's concern.
const asItIs: SealFile = bytes => bytes

let folder: string
let bank: BankServer
let options: SftpOptions
let delivery: SftpDelivery

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'midmonth-sftp-'))
  bank = new BankServer(path.join(folder, 'bank'), { password: 'correct horse', publicKey: client.public })
  writeFileSync(path.join(folder, 'password'), 'correct horse\n', { mode: 0o600 })
  writeFileSync(path.join(folder, 'key'), client.private, { mode: 0o600 })
  options = {
    folder: path.join(folder, 'local'),
    host: '127.0.0.1',
    port: await bank.listen(),
    username: 'acme',
    hostKeys: [bank.fingerprint],
    passwordFile: path.join(folder, 'password'),
    outbox: '/outbox',
    inbox: '/inbox',
  }
  delivery = await SftpDelivery.open(options)
})
afterEach(async () => {
  await bank.close()
  rmSync(folder, { recursive: true })
})

const at = (...names: string[]) => path.join(folder, ...names)
const filesOf = (...names: string[]) => readdirSync(at(...names)).sort()
async function* chunks(...parts: string[]) {
  yield* parts
}
const now = new Date('2026-03-10T09:00:00Z')
const put = async (with_: SftpDelivery = delivery) => await with_.put('batch-1.txt', chunks('abc', 'def'))

describe('a file for the bank', () => {
  test('is uploaded under a temporary name and then renamed', async () => {
    expect(await put()).toMatchObject({ size: 6 })
    expect(filesOf('bank', 'outbox')).toEqual(['batch-1.txt'])
    expect(readFileSync(at('bank', 'outbox', 'batch-1.txt'), 'utf8')).toBe('abcdef')
    expect(filesOf('local', 'outbox')).toEqual([])
    expect(bank.calls.indexOf('WRITE')).toBeLessThan(bank.calls.indexOf('RENAME'))
    // Repeated, it does not even connect.
    bank.calls = []
    await put()
    expect(bank.calls).toEqual([])
  })

  test('goes through a folder for uploads, if the bank has one', async () => {
    bank.faults = { cutAt: { call: 3, when: 'after' } }
    const staged = await SftpDelivery.open({ ...options, uploads: '/uploads' })
    await expect(put(staged)).rejects.toThrow()
    expect(filesOf('bank', 'outbox')).toEqual([])
    expect(filesOf('bank', 'uploads')).toHaveLength(1)
    bank.faults = {}
    await put(staged)
    expect(filesOf('bank', 'outbox')).toEqual(['batch-1.txt'])
  })

  test('reaches the bank once and whole, wherever the connection is cut, even if the bank takes it immediately', async () => {
    bank.takesAtOnce = true
    await delivery.put('measured.txt', chunks('x'))
    const callCount = bank.calls.length
    expect(callCount).toBeGreaterThan(5)
    let cuts = 0
    for (const when of ['before', 'after'] as const) {
      for (let call = 1; call <= callCount; call++) {
        const name = `batch-${when}-${call}.txt`
        bank.taken.splice(0)
        bank.calls = []
        bank.faults = { cutAt: { call, when } }
        await delivery.put(name, chunks('abc', 'def')).catch(() => cuts++)
        bank.faults = {}
        // A new process, which knows only what is on the disk.
        const restarted = await SftpDelivery.open(options)
        await restarted.put(name, chunks('abcdef'))
        await restarted.put(name, chunks('abcdef'))
        expect(bank.taken, name).toEqual([{ name, text: 'abcdef' }])
        expect(filesOf('local', 'outbox'), name).toEqual([])
      }
    }
    expect(cuts).toBeGreaterThan(callCount)
  })

  test('is uploaded once by concurrent attempts', async () => {
    bank.takesAtOnce = true
    const attempts = Array.from({ length: 5 }, async () => await put(await SftpDelivery.open(options)))
    await Promise.allSettled(attempts)
    await put()
    expect(bank.taken).toEqual([{ name: 'batch-1.txt', text: 'abcdef' }])
  })

  test('never replaces a file of its name on the server', async () => {
    writeFileSync(at('bank', 'outbox', 'batch-1.txt'), 'foreign')
    await expect(put()).rejects.toThrow('The server does not rename')
    expect(readFileSync(at('bank', 'outbox', 'batch-1.txt'), 'utf8')).toBe('foreign')
    rmSync(at('bank', 'outbox', 'batch-1.txt'))
    await put()
    expect(readFileSync(at('bank', 'outbox', 'batch-1.txt'), 'utf8')).toBe('abcdef')
  })

  test('of several megabytes arrives unchanged', async () => {
    const line = 'x'.repeat(99_999)
    await delivery.put('large.txt', chunks(...Array.from({ length: 50 }, (_, index) => `${line}${index % 10}`)))
    const arrived = readFileSync(at('bank', 'outbox', 'large.txt'), 'utf8')
    expect(arrived.length).toBe(5_000_000)
    expect(arrived.slice(99_999, 100_000) + arrived.slice(-1)).toBe('09')
  })
})

describe('the server is trusted only', () => {
  test('with a pinned key; there may be two', async () => {
    const other = 'SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
    const wrong = await SftpDelivery.open({ ...options, hostKeys: [other] })
    await expect(put(wrong)).rejects.toThrow(`The key of 127.0.0.1 is ${bank.fingerprint}, which is not in hostKeys`)
    expect(bank.calls).toEqual([])
    await put(await SftpDelivery.open({ ...options, hostKeys: [other, bank.fingerprint] }))
    expect(filesOf('bank', 'outbox')).toEqual(['batch-1.txt'])
  })

  test('with our password or key, from a file that other users cannot read', async () => {
    const { passwordFile: _, ...rest } = options
    const keyed = { ...rest, privateKeyFile: at('key') }
    await put(await SftpDelivery.open(keyed))
    expect(filesOf('bank', 'outbox')).toEqual(['batch-1.txt'])

    chmodSync(at('key'), 0o644)
    await expect((await SftpDelivery.open(keyed)).list(now)).rejects.toThrow('run chmod 600')
    writeFileSync(at('password'), 'wrong\n')
    await expect(delivery.list(now)).rejects.toThrow(/SFTP with 127\.0\.0\.1:\d+ failed: .*authentication/)
    const missing = await SftpDelivery.open({ ...options, passwordFile: at('none') })
    await expect(missing.list(now)).rejects.toThrow('none cannot be read')
  })
})

describe('the inbox of the bank', () => {
  const receive = (name: string, text = 'abc') => writeFileSync(at('bank', 'inbox', name), text)

  test('is fetched, and deleted from the server once the files are on our disk', async () => {
    receive('statement.xml', '<Document/>')
    receive('empty.xml', '')
    receive('.hidden')
    receive('writing.part')
    const { files, skipped } = await delivery.list(now)
    expect([files.map(({ name, size }) => [name, size]).sort(), skipped]).toEqual([
      [
        ['empty.xml', 0],
        ['statement.xml', 11],
      ],
      [],
    ])
    expect(filesOf('bank', 'inbox')).toEqual(['.hidden', 'writing.part'])
    let text = ''
    for await (const chunk of delivery.get('statement.xml')) text += Buffer.from(chunk).toString()
    expect(text).toBe('<Document/>')
    await delivery.archive('statement.xml', '2026-03-10', asItIs)
    await delivery.reject('empty.xml', 'Line 1: empty', asItIs)
    expect(filesOf('local', 'archive', '2026-03-10')).toEqual(['statement.xml.sealed'])
    expect(filesOf('local', 'rejected')).toEqual(['empty.xml.report.txt', 'empty.xml.sealed'])
  })

  test('leaves new files, and entries that are not files or cannot be read or deleted', async () => {
    receive('fresh.xml')
    bank.modifiedAt = now.getTime() / 1_000 - 59
    expect(await delivery.list(now)).toEqual({ files: [], skipped: [] })
    rmSync(at('bank', 'inbox', 'fresh.xml'))
    bank.modifiedAt = 1_000
    symlinkSync('/etc/passwd', at('bank', 'inbox', 'link.xml'))
    mkdirSync(at('bank', 'inbox', 'folder.xml'))
    expect((await delivery.list(now)).skipped.map(({ name, reason }) => [name, reason]).sort()).toEqual([
      ['folder.xml', 'it is a directory'],
      ['link.xml', 'it is a symbolic link'],
    ])

    receive('statement.xml')
    bank.faults = { refused: ['OPEN'] }
    expect((await delivery.list(now)).skipped).toHaveLength(3)
    // It is fetched once, not at every attempt.
    bank.faults = { refused: ['REMOVE'] }
    expect((await delivery.list(now)).files.map(({ name }) => name)).toEqual(['statement.xml'])
    await delivery.archive('statement.xml', '2026-03-10', asItIs)
    const again = await delivery.list(now)
    expect(again.files).toEqual([])
    expect(again.skipped).toContainEqual({
      name: 'statement.xml',
      reason: 'it was fetched, but the server does not let us delete it',
    })
  })

  test('never loses a file or shows half of one, wherever the connection is cut', async () => {
    receive('measured.xml')
    await delivery.list(now)
    const callCount = bank.calls.length
    for (const when of ['before', 'after'] as const) {
      for (let call = 1; call <= callCount; call++) {
        const name = `${when}-${call}.xml`
        receive(name, 'x'.repeat(100_000))
        bank.calls = []
        bank.faults = { cutAt: { call, when } }
        await delivery.list(now).catch(() => undefined)
        bank.faults = {}
        const { files } = await delivery.list(now)
        const ours = files.filter(file => file.name.endsWith(name))
        // Twice if the cut was between the fetch and the deletion; the importer knows it by its checksum.
        expect(ours.length, name).toBeGreaterThanOrEqual(1)
        for (const { size } of ours) expect(size, name).toBe(100_000)
        expect(filesOf('bank', 'inbox'), name).toEqual([])
      }
    }
    expect(filesOf('local', 'inbox').filter(name => name.endsWith('.part'))).toEqual([])
  })

  test('keeps two files of one name apart', async () => {
    receive('statement.xml', 'monday')
    await delivery.list(now)
    receive('statement.xml', 'tuesday')
    const { files } = await delivery.list(now)
    expect(files.map(({ name }) => name).sort()).toEqual([
      expect.stringMatching(/^[0-9a-f]{12}-statement\.xml$/),
      'statement.xml',
    ])
  })
})

describe('a server that does not answer is abandoned in time:', () => {
  test('it never speaks', async () => {
    const silent = createServer().listen(0, '127.0.0.1')
    await new Promise(resolve => silent.once('listening', resolve))
    const { port } = silent.address() as AddressInfo
    const waiting = await SftpDelivery.open({ ...options, port, connectMsMax: 100 })
    await expect(waiting.list(now)).rejects.toThrow(/Timed out while waiting for handshake/)
    silent.close()
  })

  test.each(['OPEN', 'WRITE', 'STAT', 'RENAME'])('it never answers %s, and the next attempt finishes', async call => {
    bank.faults = { ignored: [call] }
    const waiting = await SftpDelivery.open({ ...options, sessionMsMax: 1_000 })
    await expect(put(waiting)).rejects.toThrow(/^SFTP with 127\.0\.0\.1:\d+ failed: /)
    bank.faults = {}
    await put()
    expect(readFileSync(at('bank', 'outbox', 'batch-1.txt'), 'utf8')).toBe('abcdef')
  })

  test('it is not there', async () => {
    await bank.close()
    await expect(put()).rejects.toThrow(/^SFTP with 127\.0\.0\.1:\d+ failed: .*ECONNREFUSED/)
    // The file waits in the local outbox.
    expect(filesOf('local', 'outbox')).toEqual(['batch-1.txt'])
  })
})
