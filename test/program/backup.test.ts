import { randomBytes } from 'node:crypto'
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { generateX25519Identity } from 'age-encryption'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Environment, installationIn, midmonthHere, midmonthProcess, type Outcome } from './program.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

// One archive of a small installation: a partner before the base backup, and one after it, which only the WAL has.

// Restoring syncs a thousand files.
const memory = '/dev/shm'

let folder: string
let settings: Awaited<ReturnType<typeof installationIn>>
let between: Date
let first: { id: string; folder: string }
beforeAll(async () => {
  folder = mkdtempSync(path.join(existsSync(memory) ? memory : tmpdir(), 'midmonth-backups-'))
  // PostgreSQL’s user must enter it.
  chmodSync(folder, 0o755)
  const identity = await generateX25519Identity()
  writeFileSync(path.join(folder, 'backup.key'), `# created for a test\n${identity}\n`, { mode: 0o600 })
  writeFileSync(path.join(folder, 'other.key'), `${await generateX25519Identity()}\n`, { mode: 0o600 })
  settings = await installationIn(folder, identity)
  await done(['partner', 'create', 'Before the backup'])
  first = JSON.parse(await done(['backup', 'take', '--json'])).backup
  between = new Date()
  await done(['partner', 'create', 'After the backup'])
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function done(args: string[], changes: Environment = {}): Promise<string> {
  const { code, stdout, stderr } = await midmonthProcess(args, { ...settings, ...changes })
  expect({ args, code, stderr: code === 0 ? '' : stderr }).toEqual({ args, code: 0, stderr: '' })
  return stdout
}

/** Restores into a new folder. A restore that is refused early starts no server, and can run in this process. */
async function restore(
  args: string[],
  { run = midmonthHere, dir = settings.MIDMONTH_BACKUP_DIR, identity = 'backup.key' } = {},
): Promise<Outcome & { dataDir: string }> {
  const dataDir = newFolder('data')
  const outcome = await run(['restore', '--identity', path.join(folder, identity), ...args], {
    ...settings,
    MIDMONTH_DATA_DIR: dataDir,
    MIDMONTH_BACKUP_DIR: dir,
  })
  return { ...outcome, dataDir }
}
/** The path of a folder that does not exist yet. */
const newFolder = (name: string) => path.join(folder, `${name}-${randomBytes(4).toString('hex')}`)

/** A copy of the archive, to be damaged. */
function copyOfArchive(): { dir: string; base: string; wal: string[] } {
  const dir = mkdtempSync(path.join(folder, 'copy-'))
  cpSync(settings.MIDMONTH_BACKUP_DIR, dir, { recursive: true })
  const [server = ''] = readdirSync(dir)
  const wal = path.join(dir, server, 'wal/0000000100000000')
  const segments = readdirSync(wal).filter(name => !name.includes('.backup'))
  return { dir, base: path.join(dir, server, 'base'), wal: segments.map(name => path.join(wal, name)).toSorted() }
}

const filesIn = (dir: string) => readdirSync(dir, { recursive: true, encoding: 'utf8' }).toSorted()

test('a restore to an instant has what was committed until then, holds all rails, and never replaces a database', async () => {
  const { dir } = copyOfArchive()
  const before = filesIn(dir)
  const at = ['--at', between.toISOString(), '--json']
  const { dataDir, ...restored } = await restore(at, { run: midmonthProcess, dir })
  expect(restored).toMatchObject({ code: 0 })
  const { recoveredUntil, ...printed } = JSON.parse(restored.stdout)
  expect(printed).toMatchObject({ backup: first.id, dataDir, timeline: 1 })
  expect(Date.parse(recoveredUntil)).toBeLessThan(between.getTime())
  // The server whose archive this is may be running.
  expect(filesIn(dir)).toEqual(before)
  const inUse = { ...settings, MIDMONTH_DATA_DIR: dataDir, MIDMONTH_BACKUP_DIR: dir }
  const partners = JSON.parse(await done(['partner', 'list', '--json'], inUse))
  expect(partners.map(({ name }: { name: string }) => name)).toEqual(['Before the backup'])
  const added = filesIn(dir).filter(name => !before.includes(name))
  expect(added.filter(name => name.includes('00000002.history'))).toHaveLength(1)
  expect(added.filter(name => name.includes('0000000200000000/'))).not.toEqual([])
  const status = await midmonthProcess(['status'], inUse)
  expect(status.stdout).toContain('! The server was recovered from an archive of its WAL')
  const again = await midmonthHere(['restore', '--identity', path.join(folder, 'backup.key')], {
    ...{ ...settings, MIDMONTH_DATA_DIR: dataDir },
  })
  expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('which a restore would replace') })

  // Both timelines have what the other lacks.
  const chosen = await restore([], { dir })
  expect(chosen).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Choose one with midmonth restore --timeline'),
  })
  const earlier = await restore(['--timeline', '1', '--json'], { run: midmonthProcess, dir })
  expect(earlier).toMatchObject({ code: 0 })
  expect(Date.parse(JSON.parse(earlier.stdout).recoveredUntil)).toBeGreaterThan(between.getTime())
  for (const name of added.filter(each => each.includes('.history'))) rmSync(path.join(dir, name))
  const lost = await restore(['--timeline', '2'], { dir })
  expect(lost).toMatchObject({ code: 1, stderr: expect.stringContaining('lacks the history of timeline 2') })
})

test('a damaged archive, or another private key, is refused with the reason, and leaves nothing behind', async () => {
  const refusal = async (dir: string, { args = [] as string[], identity = 'backup.key' } = {}) => {
    const { code, stderr, dataDir } = await restore(args, { dir, identity })
    expect(code).toBe(1)
    expect(existsSync(dataDir) ? readdirSync(dataDir) : []).toEqual([])
    return stderr
  }
  const cut = copyOfArchive()
  truncateSync(path.join(cut.base, first.id, 'base.tar.gz.age'), 100_000)
  expect(await refusal(cut.dir)).toContain('was cut off')
  const changed = copyOfArchive()
  appendFileSync(path.join(changed.base, first.id, 'base.tar.gz.age'), 'x')
  expect(await refusal(changed.dir)).toContain('was changed')
  // What a backup that was killed leaves behind.
  const killed = copyOfArchive()
  cpSync(path.join(killed.base, first.id), path.join(killed.base, '.unfinished-1'), { recursive: true })
  rmSync(path.join(killed.base, first.id), { recursive: true })
  expect(await refusal(killed.dir)).toContain('There is no complete backup in')
  const gap = copyOfArchive()
  expect(gap.wal.length).toBeGreaterThan(2)
  rmSync(gap.wal.at(-2) ?? '')
  expect(await refusal(gap.dir)).toMatch(
    /The archive lacks the WAL segment 0000000100000000000000\w\w, which the backup/,
  )
  expect(await refusal(gap.dir, { args: ['--at', '2020-01-01T00:00:00Z'] })).toContain('No backup ended before 2020')
  const sealed = await refusal(settings.MIDMONTH_BACKUP_DIR, { identity: 'other.key' })
  expect(sealed).toContain('base.tar.gz.age cannot be read')
})

test('an instant after the last commit of the archive is refused with the way out', async () => {
  const refused = await restore(['--at', new Date().toISOString()], { run: midmonthProcess })
  expect(refused).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/The archive has no commit after .*omit --at/),
  })
  expect(readdirSync(refused.dataDir)).toEqual([])
})

test('a start in an empty data folder is refused if the key belongs to a database, and creates nothing', async () => {
  const dataDir = newFolder('data')
  const refused = await midmonthProcess(['partner', 'list'], { ...settings, MIDMONTH_DATA_DIR: dataDir })
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('belongs to a database with data') })
  expect(existsSync(path.join(dataDir, 'postgres-18'))).toBe(false)
})

test('an upgrade is rehearsed on the last backup, beside the database, and leaves nothing behind', async () => {
  const before = [...readdirSync(folder), ...readdirSync(settings.MIDMONTH_DATA_DIR)]
  const rehearsal = ['upgrade', '--rehearse', '--identity', path.join(folder, 'backup.key')]
  expect(await done(rehearsal)).toBe('No step is left: the copy is up to date.\n')
  expect([...readdirSync(folder), ...readdirSync(settings.MIDMONTH_DATA_DIR)]).toEqual(before)
  const refused = await midmonthHere(['upgrade', '--rehearse'], settings)
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('Name the copy with --database-url') })
})
