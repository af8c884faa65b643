import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Decrypter, generateX25519Identity, identityToRecipient } from 'age-encryption'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { DeliveryProblem } from './delivery.ts'
import { FolderDelivery } from './folder.ts'
import type { SealFile } from './sealed-file.ts'

let folder: string
let delivery: FolderDelivery
beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'midmonth-delivery-'))
  delivery = await FolderDelivery.open({ folder })
})
afterEach(() => rmSync(folder, { recursive: true }))

const at = (...names: string[]) => path.join(folder, ...names)
const read = (...names: string[]) => readFileSync(at(...names), 'utf8')
/** Every file below the folder, with `/`. */
const files = (below = '') =>
  readdirSync(at(below), { recursive: true, withFileTypes: true })
    .filter(entry => !entry.isDirectory())
    .map(entry => path.relative(at(below), path.join(entry.parentPath, entry.name)))
    .sort()
// What the caller seals with is not the folder's concern.
const asItIs: SealFile = bytes => bytes
async function* chunks(...parts: (string | Uint8Array)[]) {
  yield* parts
}
async function collected(bytes: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = []
  for await (const chunk of bytes) chunks.push(chunk)
  return chunks
}
const textOf = async (bytes: AsyncIterable<Uint8Array>) => Buffer.concat(await collected(bytes)).toString()
// So far from now that every file in the inbox is old.
const inAnHour = () => new Date(Date.now() + 3_600_000)

describe('a file for the bank', () => {
  test('appears whole under its name, readable only by us, with its checksum', async () => {
    const put = await delivery.put('batch-1.txt', chunks('abc', Buffer.from('def')))
    // sha256 of 'abcdef'.
    expect(put).toEqual({ sha256: 'bef57ec7f53a6d40beb640a780a639c83bc29ac8a9816f1fc6c5c6dcd93c4721', size: 6 })
    expect(read('outbox', 'batch-1.txt')).toBe('abcdef')
    expect(statSync(at('outbox', 'batch-1.txt')).mode & 0o777).toBe(0o600)
    expect(statSync(at('outbox')).mode & 0o777).toBe(0o700)
    expect(files()).toEqual(['outbox/batch-1.txt', 'sent/batch-1.txt.json'])
  })

  test('is delivered once, even if the bank has taken it before the second attempt', async () => {
    const first = await delivery.put('batch-1.txt', chunks('abc'))
    expect(await delivery.put('batch-1.txt', chunks('a', 'bc'))).toEqual(first)
    rmSync(at('outbox', 'batch-1.txt'))
    expect(await delivery.put('batch-1.txt', chunks('abc'))).toEqual(first)
    expect(files()).toEqual(['sent/batch-1.txt.json'])
  })

  test('is delivered once by many concurrent attempts', async () => {
    const puts = Array.from({ length: 20 }, () => delivery.put('batch-1.txt', chunks('abc')))
    expect(new Set((await Promise.all(puts)).map(({ sha256 }) => sha256)).size).toBe(1)
    expect(files()).toEqual(['outbox/batch-1.txt', 'sent/batch-1.txt.json'])
  })

  test('never replaces another file of its name, neither ours nor someone else’s', async () => {
    await delivery.put('batch-1.txt', chunks('abc'))
    await expect(delivery.put('batch-1.txt', chunks('other'))).rejects.toThrow('Another file named batch-1.txt')
    expect(read('outbox', 'batch-1.txt')).toBe('abc')

    writeFileSync(at('outbox', 'batch-2.txt'), 'foreign')
    await expect(delivery.put('batch-2.txt', chunks('abc'))).rejects.toThrow('is not ours; move it away')
    expect(read('outbox', 'batch-2.txt')).toBe('foreign')
    // Once that file is gone, the next attempt finishes.
    rmSync(at('outbox', 'batch-2.txt'))
    await delivery.put('batch-2.txt', chunks('abc'))
    expect(read('outbox', 'batch-2.txt')).toBe('abc')
  })

  test('is finished by the next attempt, wherever the previous one was killed', async () => {
    // While writing: half a temporary file.
    writeFileSync(at('outbox', '.a.txt.0123456789ab.part'), 'ab')
    await delivery.put('a.txt', chunks('abc'))
    expect(files('outbox')).toEqual(['a.txt'])

    // Between the record and the rename: both are there, and no file.
    await delivery.put('b.txt', chunks('abc'))
    const { part } = JSON.parse(read('sent', 'b.txt.json'))
    renameSync(at('outbox', 'b.txt'), at('outbox', part))
    await delivery.put('b.txt', chunks('abc'))
    expect(files('outbox')).toEqual(['a.txt', 'b.txt'])
    expect(read('outbox', 'b.txt')).toBe('abc')
  })

  test('whose bytes end with an error leaves nothing behind', async () => {
    async function* broken() {
      yield 'abc'
      throw new Error('The payments do not add up')
    }
    await expect(delivery.put('batch-1.txt', broken())).rejects.toThrow('do not add up')
    expect(files()).toEqual([])
    await delivery.put('batch-1.txt', chunks('abc'))
    expect(files('outbox')).toEqual(['batch-1.txt'])
  })

  test.each(['../up.txt', 'a/b', '.hidden', '', 'a\0b', 'a\nb', 'x'.repeat(181)])('is not named %j', async name => {
    await expect(delivery.put(name, chunks('abc'))).rejects.toThrow(DeliveryProblem)
    expect(files()).toEqual([])
  })
})

// Only root can mount.
if (process.platform === 'linux' && process.getuid?.() === 0) {
  test('on a full disk, a file is not delivered until there is room', async () => {
    const disk = mkdtempSync(path.join(tmpdir(), 'midmonth-full-'))
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk])
    try {
      const small = await FolderDelivery.open({ folder: disk })
      const large = Buffer.alloc(128 * 1024, 'x')
      const put = small.put('batch-1.txt', chunks(large))
      await expect(put).rejects.toThrow(`No space is left in ${path.join(disk, 'outbox')}; free some space`)
      expect(readdirSync(path.join(disk, 'outbox'))).toEqual([])
      execFileSync('mount', ['-o', 'remount,size=1m', disk])
      await small.put('batch-1.txt', chunks(large))
      expect(statSync(path.join(disk, 'outbox', 'batch-1.txt')).size).toBe(large.length)
    } finally {
      execFileSync('umount', [disk])
      rmSync(disk, { recursive: true })
    }
  })
}

describe('the inbox', () => {
  test('lists complete files, oldest first, and leaves files that are still being written', async () => {
    for (const name of ['new.xml', 'old.xml', '.hidden', 'a.part', 'b.tmp', 'c.filepart', 'd~']) {
      writeFileSync(at('inbox', name), 'abc')
    }
    utimesSync(at('inbox', 'old.xml'), 1, 1)
    expect((await delivery.list(inAnHour())).files).toEqual([
      { name: 'old.xml', size: 3, modifiedAt: new Date(1_000) },
      { name: 'new.xml', size: 3, modifiedAt: expect.any(Date) },
    ])
    // Written within the last minute, whatever its modification time says.
    expect((await delivery.list(new Date())).files).toEqual([])
    expect((await delivery.list(new Date(Date.now() + 61_000))).files).toHaveLength(2)
  })

  test('names entries that are not files, and neither reads nor moves them', async () => {
    symlinkSync('/etc/passwd', at('inbox', 'link.xml'))
    mkdirSync(at('inbox', 'folder.xml'))
    execFileSync('mkfifo', [at('inbox', 'pipe.xml')])
    writeFileSync(at('inbox', 'line\nbreak.xml'), 'abc')
    // Only Linux has names that are not UTF-8.
    const isLinux = process.platform === 'linux'
    if (isLinux) writeFileSync(Buffer.concat([Buffer.from(`${at('inbox')}/`), Buffer.from([0xff, 0x2e])]), 'abc')
    const socket = createServer().listen(at('inbox', 'socket.xml'))
    await new Promise(resolve => socket.once('listening', resolve))
    try {
      const { files, skipped } = await delivery.list(inAnHour())
      expect(files).toEqual([])
      expect(Object.fromEntries(skipped.map(({ name, reason }) => [name, reason]))).toEqual({
        'link.xml': 'it is a symbolic link',
        'folder.xml': 'it is a directory',
        'pipe.xml': 'it is not a regular file',
        'socket.xml': 'it is not a regular file',
        'line\nbreak.xml': expect.stringMatching(/^its name/),
        ...(isLinux ? { '\ufffd.': expect.stringMatching(/^its name/) } : {}),
      })
      for (const name of ['link.xml', 'folder.xml', 'pipe.xml', 'socket.xml']) {
        await expect(textOf(delivery.get(name)), name).rejects.toThrow('is not a regular file')
      }
      await expect(async () => await textOf(delivery.get('../sent/x'))).rejects.toThrow(DeliveryProblem)
    } finally {
      socket.close()
    }
  })

  test('gives a file in chunks', async () => {
    writeFileSync(at('inbox', 'large.xml'), Buffer.alloc(1_000_000, 'x'))
    const sizes = (await collected(delivery.get('large.xml'))).map(chunk => chunk.length)
    expect(sizes.length).toBeGreaterThan(10)
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(1_000_000)
  })

  test('is emptied into the archive of the day, where equal names do not collide', async () => {
    for (const text of ['one', 'two', 'three']) {
      writeFileSync(at('inbox', 'statement.xml'), text)
      chmodSync(at('inbox', 'statement.xml'), 0o644)
      await delivery.archive('statement.xml', '2026-03-10', asItIs)
    }
    expect(files('archive')).toEqual([
      ...['2026-03-10/statement.xml.2.sealed', '2026-03-10/statement.xml.3.sealed', '2026-03-10/statement.xml.sealed'],
    ])
    expect(read('archive', '2026-03-10', 'statement.xml.3.sealed')).toBe('three')
    expect(statSync(at('archive', '2026-03-10', 'statement.xml.sealed')).mode & 0o777).toBe(0o600)
    // Repeated after a crash.
    await delivery.archive('statement.xml', '2026-03-10', asItIs)
    expect(files('inbox')).toEqual([])
  })

  test('is emptied into the rejected files, each with a report beside it', async () => {
    for (const text of ['one', 'two']) {
      writeFileSync(at('inbox', 'broken.xml'), text)
      await delivery.reject('broken.xml', `Line 3: ${text}`, asItIs)
    }
    await delivery.reject('broken.xml', 'Repeated after a crash', asItIs)
    expect(files('rejected')).toEqual([
      ...['broken.xml.2.report.txt', 'broken.xml.2.sealed', 'broken.xml.report.txt', 'broken.xml.sealed'],
    ])
    expect(read('rejected', 'broken.xml.2.report.txt')).toBe('Line 3: two')
    expect(read('rejected', 'broken.xml.2.sealed')).toBe('two')
  })

  test('is archived so that only the recipients can read it, if there are any', async () => {
    const identity = await generateX25519Identity()
    const recipients = [await identityToRecipient(identity), await identityToRecipient(await generateX25519Identity())]
    const sealed = await FolderDelivery.open({ folder, recipients })
    const text = 'GB29NWBK60161331926819 '.repeat(10_000)
    writeFileSync(at('inbox', 'statement.xml'), text)
    writeFileSync(at('inbox', 'broken.xml'), text)
    await sealed.archive('statement.xml', '2026-03-10', asItIs)
    await sealed.reject('broken.xml', 'Line 1: not XML', asItIs)
    expect(files()).toEqual([
      ...['archive/2026-03-10/statement.xml.age', 'rejected/broken.xml.age', 'rejected/broken.xml.report.txt'],
    ])
    for (const file of [at('archive', '2026-03-10', 'statement.xml.age'), at('rejected', 'broken.xml.age')]) {
      expect(readFileSync(file).includes('GB29')).toBe(false)
      const decrypter = new Decrypter()
      decrypter.addIdentity(identity)
      expect(await decrypter.decrypt(readFileSync(file), 'text')).toBe(text)
    }
  })

  test('keeps a file that cannot be encrypted because a recipient is malformed', async () => {
    const sealed = await FolderDelivery.open({ folder, recipients: ['age1wrong'] })
    writeFileSync(at('inbox', 'statement.xml'), 'abc')
    await expect(sealed.archive('statement.xml', '2026-03-10', asItIs)).rejects.toThrow()
    expect(files('inbox')).toEqual(['statement.xml'])
    expect(existsSync(at('archive', '2026-03-10', 'statement.xml.age'))).toBe(false)
  })
})
