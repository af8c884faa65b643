import { execFile } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import pino from 'pino'
import { connect } from '../../src/database/connect.ts'
import * as members from '../../src/members/members.ts'
import { claimMode, listPartners } from '../../src/partners/partners.ts'
import { seedDemo } from '../../src/sandbox/demo.ts'
import { openSealer } from '../../src/sealing/installation-keys.ts'
import { runCommand } from '../crash/program.ts'
import { keySource } from '../harness/installation-key.ts'
import { createPostgres, type Postgres } from '../servers/postgres.ts'
import { Skipped } from './drill.ts'

export const title =
  'dumps of the data and of the keys are restored, and keys from an older dump are refused or given up'

const run15 = '/usr/lib/postgresql/15'
const invitedCount = 3

export async function run(say: (line: string) => void): Promise<void> {
  if (!existsSync(`${run15}/bin/pg_dump`)) throw new Skipped('the drill needs Debian’s package postgresql-15')
  const folder = mkdtempSync(path.join(tmpdir(), 'midmonth-member-keys-'))
  chmodSync(folder, 0o755)
  const logs = path.join(folder, 'logs')
  mkdirSync(logs)
  const postgres = await createPostgres({ folder, logs, binaries: run15 })
  const blocks = shellBlocks(readFileSync(new URL('../../docs/operations/backups.md', import.meta.url), 'utf8'))
  const [dumping = '', restoring = ''] = blocks.filter(block => block.includes('member-keys.dump'))
  const sh = async (text: string, settings: Record<string, string>) =>
    await promisify(execFile)('sh', ['-ec', text], {
      cwd: folder,
      env: { PATH: `${run15}/bin:${process.env.PATH}`, ...settings },
    })
  try {
    await postgres.start()
    await runCommand(postgres.url, ['migrate'], { DATABASE_OWNER_URL: postgres.ownerUrl })
    await seed(postgres)
    await sh(dumping, { DATABASE_OWNER_URL: postgres.ownerUrl })
    await sh('mv member-keys.dump older.dump', {})
    const invited = await invite(postgres)
    await sh(dumping, { DATABASE_OWNER_URL: postgres.ownerUrl })

    const restored = await restore(postgres, 'restored', { sh, restoring })
    await runCommand(restored.url, ['migrate'], { DATABASE_OWNER_URL: restored.ownerUrl })
    await runCommand(restored.url, ['ledger', 'verify', '--all'])
    say('both dumps are restored, and the books agree')

    await sh('mv older.dump member-keys.dump', {})
    const older = await restore(postgres, 'older', { sh, restoring })
    for (const args of [['migrate'], ['ledger', 'verify']]) {
      const said = await runCommand(older.url, args, { DATABASE_OWNER_URL: older.ownerUrl }).then(
        () => 'it ran',
        error => String(error.stderr).trim(),
      )
      const names = `${invitedCount} members have no keys in member_keys that open (${invited.join(', ')})`
      if (!said.includes(names)) throw new Error(`midmonth ${args.join(' ')} with older keys: ${said}`)
    }
    say(`the older dump of the keys is refused: it lacks ${invitedCount} members`)
    await runCommand(older.url, ['backup', 'keys-lost', '--yes'])
    await runCommand(older.url, ['migrate'], { DATABASE_OWNER_URL: older.ownerUrl })
    await runCommand(older.url, ['ledger', 'verify', '--all'])
    say('given up, the rest is usable, and the books agree')
  } finally {
    await postgres.stop()
  }
  rmSync(folder, { recursive: true })
}

const shellBlocks = (text: string) => [...text.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, block = '']) => block)

/** Restores the dumps in a new database of the server, by the commands of the page but for the last, `midmonth migrate`. */
async function restore(
  postgres: Postgres,
  name: string,
  { sh, restoring }: { sh: (text: string, settings: Record<string, string>) => Promise<unknown>; restoring: string },
): Promise<{ url: string; ownerUrl: string }> {
  await sh(`createdb --host="${postgres.host}" --username=postgres --owner=midmonth_owner ${name}`, {})
  const at = (url: string) => url.replace('/midmonth?', `/${name}?`)
  const ownerUrl = at(postgres.ownerUrl)
  const commands = restoring.split('\n').filter(line => line.startsWith('pg_restore '))
  await sh(commands.join('\n'), { NEW_DATABASE_OWNER_URL: ownerUrl })
  return { url: at(postgres.url), ownerUrl }
}

const open = async ({ url }: Postgres) => {
  const databases = connect(url, { log: pino({ level: 'silent' }), connectionsMax: 2 })
  await openSealer(databases.db, keySource)
  return databases
}

async function seed(postgres: Postgres): Promise<void> {
  const { db, close } = await open(postgres)
  const now = new Date()
  await db.transaction().execute(tx => claimMode(tx, { mode: 'sandbox', now }))
  await seedDemo(db, now)
  await close()
}

/** @returns the ids of the invited members, in order */
async function invite(postgres: Postgres): Promise<string[]> {
  const { db, close } = await open(postgres)
  const [partner] = await listPartners(db)
  if (partner === undefined) throw new Error('The demo has a partner')
  const ids: string[] = []
  for (let number = 1; number <= invitedCount; number++) {
    const body = { email: `late-${number}@example.com`, firstName: 'Late', lastName: 'Person', tier: 'Bronze' }
    const { id } = await db.transaction().execute(tx => members.invite(tx, { partner, body, now: new Date() }))
    ids.push(id)
  }
  await close()
  return ids
}
