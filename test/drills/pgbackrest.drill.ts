import { execFile } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { asUser, serverUser } from '@midmonth/embedded-postgres'
import { runCommand } from '../crash/program.ts'
import { createPostgres } from '../servers/postgres.ts'
import { Skipped } from './drill.ts'

export const title =
  'pgBackRest restores a server of Debian’s PostgreSQL 15 to an instant, and nothing is sent afterwards'

const run15 = '/usr/lib/postgresql/15'
const program = '/usr/bin/pgbackrest'

export async function run(say: (line: string) => void): Promise<void> {
  const missing = [`${run15}/bin/postgres`, program].filter(file => !existsSync(file))
  if (missing.length > 0)
    throw new Skipped(`${missing.join(' and ')} not installed (Debian: postgresql-15, pgbackrest)`)
  const folder = mkdtempSync(path.join(tmpdir(), 'midmonth-pgbackrest-'))
  chmodSync(folder, 0o755)
  const config = path.join(folder, 'pgbackrest.conf')
  const pgdata = path.join(folder, 'postgres')
  const logs = path.join(folder, 'logs')
  mkdirSync(logs)
  const pgbackrest = `${program} --config=${config} --stanza=midmonth`
  const settings = { archive_mode: 'on', archive_command: `${pgbackrest} archive-push %p`, archive_timeout: '60' }
  const postgres = await createPostgres({ folder, logs, settings, binaries: run15 })
  const user = serverUser(pgdata)
  const sockets = new URL(postgres.url).searchParams.get('host')
  // As docs/operations/backups.md has it, with the paths of the drill.
  const lines = [
    '[global]',
    ...[`repo1-path=${folder}/repository`, 'repo1-cipher-type=aes-256-cbc', 'repo1-cipher-pass=drill', 'start-fast=y'],
    ...['repo1-retention-full-type=time', 'repo1-retention-full=35', `log-path=${folder}`, `lock-path=${folder}/lock`],
    '[midmonth]',
    ...[`pg1-path=${pgdata}`, `pg1-socket-path=${sockets}`, 'pg1-user=postgres'],
  ]
  writeFileSync(config, `${lines.join('\n')}\n`)
  for (const name of ['repository', 'lock']) mkdirSync(path.join(folder, name), { mode: 0o700 })
  for (const name of ['', 'repository', 'lock', 'pgbackrest.conf'])
    chownSync(path.join(folder, name), user.uid, user.gid)
  const asServer = async (args: string[]) =>
    await promisify(execFile)(program, [`--config=${config}`, '--stanza=midmonth', ...args], asUser(user))
  const partners = async (): Promise<string[]> =>
    JSON.parse(await runCommand(postgres.url, ['partner', 'list', '--json'])).map(({ name }: { name: string }) => name)
  const status = async (): Promise<string> =>
    await runCommand(postgres.url, ['status']).catch(error => String(error.stdout))
  try {
    await postgres.start()
    await asServer(['stanza-create'])
    await asServer(['check'])
    await runCommand(postgres.url, ['migrate'], { DATABASE_OWNER_URL: postgres.ownerUrl })
    await runCommand(postgres.url, ['partner', 'create', 'Before the backup'])
    await asServer(['--type=full', 'backup'])
    await runCommand(postgres.url, ['backup', 'recorded'])
    await runCommand(postgres.url, ['partner', 'create', 'After the backup'])
    await sleep(1_000)
    const at = new Date()
    await sleep(1_000)
    await runCommand(postgres.url, ['partner', 'create', 'After the instant'])
    if ((await status()).includes('recovered from an archive')) throw new Error('A restore was noticed before it')
    await postgres.stop()
    for (const name of readdirSync(pgdata)) rmSync(path.join(pgdata, name), { recursive: true })

    const startedAt = performance.now()
    const target = at.toISOString().replace('T', ' ').replace('Z', '+00')
    await asServer(['restore', '--type=time', `--target=${target}`, '--target-action=promote'])
    await postgres.start()
    say(`restored to ${at.toISOString()} in ${Math.round((performance.now() - startedAt) / 1_000)} s`)
    await runCommand(postgres.url, ['migrate'], { DATABASE_OWNER_URL: postgres.ownerUrl })
    const found = (await partners()).toSorted()
    if (found.join() !== 'After the backup,Before the backup') throw new Error(`Restored: ${found.join(', ')}`)
    const noticed = await status()
    if (!noticed.includes('! The server was recovered from an archive of its WAL'))
      throw new Error(`The restore was not noticed: ${noticed}`)
    say('payments are stopped, as a restore was noticed without being declared')
    await runCommand(postgres.url, ['ledger', 'verify', '--all'])
    say('the books agree')
  } finally {
    await postgres.stop()
  }
  rmSync(folder, { recursive: true })
}
