import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { Skipped } from './drill.ts'

export const title =
  'the embedded server is restored after a backup that was killed and an archive that was full, and a drill beside it agrees'

const command = fileURLToPath(new URL('../../cli/midmonth.ts', import.meta.url))

export async function run(say: (line: string) => void): Promise<void> {
  if (process.getuid?.() !== 0) throw new Skipped('a full disk needs root, who can mount one')
  const folder = mkdtempSync(path.join(tmpdir(), 'midmonth-restore-'))
  chmodSync(folder, 0o755)
  const archive = path.join(folder, 'archive')
  mkdirSync(archive)
  await promisify(execFile)('mount', ['-t', 'tmpfs', '-o', 'size=40m', 'tmpfs', archive])
  const identity = await generateX25519Identity()
  const key = path.join(folder, 'backup.key')
  writeFileSync(key, `${identity}\n`, { mode: 0o600 })
  const environment = {
    PATH: process.env.PATH,
    ...{ PORT: '0', MIDMONTH_DOCS: 'off', MIDMONTH_HEALTH_PORT: '0', MIDMONTH_DRAIN_SECONDS: '0' },
    ...{ MIDMONTH_DATA_DIR: path.join(folder, 'data'), MIDMONTH_STATE_DIR: path.join(folder, 'state') },
    ...{ MIDMONTH_BACKUP_DIR: archive, MIDMONTH_BACKUP_RECIPIENTS: await identityToRecipient(identity) },
  }
  const start = (...args: string[]): ChildProcess =>
    spawn(process.execPath, [command, ...args], { env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
  const midmonth = async (args: string[], changes = {}): Promise<string> =>
    (await promisify(execFile)(process.execPath, [command, ...args], { env: { ...environment, ...changes } })).stdout
  const status = async () => await midmonth(['status']).catch(error => String(error.stdout))
  const service = start('start')
  try {
    await printed(service, 'Press Ctrl-C to stop.')
    await midmonth(['backup', 'take'])

    const killed = start('backup', 'take')
    while (!basesIn(archive).some(name => name.startsWith('.unfinished-')) && killed.exitCode === null) await sleep(5)
    killed.kill('SIGKILL')
    await once(killed, 'exit')
    const { length } = JSON.parse(await midmonth(['backup', 'list', '--json']))
    if (length !== 1) throw new Error(`A killed backup counts: ${length}`)
    await midmonth(['backup', 'take'])
    if (basesIn(archive).some(name => name.startsWith('.')))
      throw new Error('The rest of the killed backup is still there')
    say('a backup that was killed does not count, and the next one removes its rest')

    const filler = path.join(archive, 'filler')
    await promisify(execFile)('dd', ['if=/dev/zero', `of=${filler}`, 'bs=1M', 'count=60']).catch(() => undefined)
    await midmonth(['partner', 'create', 'While the archive is full'])
    const fullSince = performance.now()
    while (!(await status()).includes('attempt to archive its WAL')) {
      if (performance.now() - fullSince > 180_000) throw new Error('A full archive is not noticed')
      await sleep(2_000)
    }
    say(
      `a full archive is in the status after ${Math.round((performance.now() - fullSince) / 1_000)} s; the service runs on`,
    )
    rmSync(filler)
    const freedAt = performance.now()
    while ((await status()).includes('attempt to archive its WAL')) {
      if (performance.now() - freedAt > 180_000) throw new Error('Archiving does not go on')
      await sleep(2_000)
    }
    say('once there is room, archiving goes on')

    const drill = JSON.parse(await midmonth(['drill', 'restore', '--identity', key, '--json']))
    if (drill.broken.length > 0 || drill.events === 0) throw new Error(`The drill found ${JSON.stringify(drill)}`)
    say(`drill restore took ${drill.seconds} s, ${drill.events} events, until ${drill.recoveredUntil}`)
    service.kill('SIGTERM')
    await once(service, 'exit')

    const lost = { MIDMONTH_DATA_DIR: path.join(folder, 'restored') }
    await midmonth(['restore', '--identity', key], lost)
    const partners: { name: string }[] = JSON.parse(await midmonth(['partner', 'list', '--json'], lost))
    if (!partners.some(({ name }) => name === 'While the archive is full')) throw new Error('A commit was lost')
    await midmonth(['ledger', 'verify', '--all'], lost)
    say('the restored server has what was committed until the end, and its books agree')
  } finally {
    if (service.exitCode === null && service.signalCode === null) {
      service.kill('SIGTERM')
      await once(service, 'exit')
    }
    await promisify(execFile)('umount', [archive])
  }
  rmSync(folder, { recursive: true })
}

/** The base backups of all servers, with the unfinished ones. */
function basesIn(archive: string): string[] {
  return readdirSync(archive, { recursive: true, encoding: 'utf8' }).flatMap(name => {
    const [, base] = /^[^/]+\/base\/([^/]+)$/.exec(name) ?? []
    return base === undefined ? [] : [base]
  })
}

async function printed(child: ChildProcess, text: string): Promise<void> {
  let output = ''
  child.stderr?.resume()
  for await (const chunk of child.stdout ?? []) {
    output += chunk
    if (output.includes(text)) break
  }
  if (!output.includes(text)) throw new Error(`The service ended: ${output}`)
  child.stdout?.resume()
}
