import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import path from 'node:path'
import { SftpDelivery } from '../../src/payouts/delivery/sftp.ts'
import { newKeyPair } from '../../src/payouts/delivery/sftp-server.fixture.ts'
import { freePort } from '../servers/free-port.ts'

// Exchanges bank files with a real OpenSSH server: `npm run openssh`. `npm test` uses a server in the test process.

const sshd = ['/usr/sbin/sshd', '/usr/local/sbin/sshd', '/opt/homebrew/sbin/sshd', process.env.SSHD].find(
  each => each !== undefined && existsSync(each),
)
if (sshd === undefined) {
  console.log('Skipped: OpenSSH server not found; install it (Debian: apt-get install openssh-server)')
  process.exit(0)
}

const folder = mkdtempSync(path.join(tmpdir(), 'midmonth-openssh-'))
const at = (...names: string[]) => path.join(folder, ...names)
for (const name of ['outbox', 'inbox']) mkdirSync(at('bank', name), { recursive: true })
const [hostKey, clientKey] = [newKeyPair(), newKeyPair()]
writeFileSync(at('host_key'), hostKey.private, { mode: 0o600 })
writeFileSync(at('host_key.pub'), hostKey.public)
writeFileSync(at('key'), clientKey.private, { mode: 0o600 })
writeFileSync(at('authorized_keys'), clientKey.public, { mode: 0o600 })
const port = await freePort()
writeFileSync(
  at('sshd_config'),
  [
    ...[`HostKey ${at('host_key')}`, `AuthorizedKeysFile ${at('authorized_keys')}`, 'ListenAddress 127.0.0.1'],
    ...[`Port ${port}`, 'PidFile none', 'UsePAM no', 'StrictModes no', 'PermitRootLogin yes'],
    'Subsystem sftp internal-sftp',
  ].join('\n'),
)
// The folder that sshd needs for privilege separation when root starts it.
if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true })
const server = spawn(sshd, ['-D', '-e', '-f', at('sshd_config')], { stdio: ['ignore', 'ignore', 'pipe'] })
let log = ''
server.stderr.on('data', chunk => {
  log += chunk
})

try {
  await until(() => log.includes('Server listening'))
  const fingerprint = execFileSync('ssh-keygen', ['-lf', at('host_key.pub')], { encoding: 'utf8' }).split(' ')[1] ?? ''
  const options = {
    ...{ folder: at('local'), host: '127.0.0.1', port, username: userInfo().username, privateKeyFile: at('key') },
    ...{ hostKeys: [fingerprint], outbox: at('bank', 'outbox'), inbox: at('bank', 'inbox'), quietMs: 0 },
  }
  const delivery = await SftpDelivery.open(options)
  const text = 'x'.repeat(3_000_000)

  await delivery.put('batch-1.txt', chunks(text))
  expect('the complete file is the only one in the outbox', readdirSync(at('bank', 'outbox')).join() === 'batch-1.txt')
  expect('its bytes are ours', readFileSync(at('bank', 'outbox', 'batch-1.txt'), 'utf8') === text)

  rmSync(at('bank', 'outbox', 'batch-1.txt'))
  await delivery.put('batch-1.txt', chunks(text))
  expect('a file that the bank has collected is not sent again', readdirSync(at('bank', 'outbox')).length === 0)

  writeFileSync(at('bank', 'outbox', 'batch-2.txt'), 'foreign')
  expect('an existing file is not replaced', (await failure(delivery.put('batch-2.txt', chunks('ours')))) !== undefined)
  expect('an existing file keeps its bytes', readFileSync(at('bank', 'outbox', 'batch-2.txt'), 'utf8') === 'foreign')

  writeFileSync(at('bank', 'inbox', 'statement.xml'), text)
  const { files } = await delivery.list(new Date(Date.now() + 60_000))
  expect(
    'a file from the bank is fetched',
    files.map(({ name, size }) => `${name} ${size}`).join() === 'statement.xml 3000000',
  )
  expect('a fetched file is deleted from the server', readdirSync(at('bank', 'inbox')).length === 0)

  const stranger = await SftpDelivery.open({ ...options, hostKeys: ['SHA256:none'] })
  const refusal = await failure(stranger.list(new Date()))
  expect('an unknown host key is refused, and the error names it', refusal?.includes(fingerprint) === true)
  console.log('All of OpenSSH passed')
} catch (error) {
  console.error(log)
  throw error
} finally {
  server.kill()
  rmSync(folder, { recursive: true })
}

function expect(promise: string, isKept: boolean): void {
  if (!isKept) throw new Error(`Failed: ${promise}`)
  console.log(`ok: ${promise}`)
}

async function failure(work: Promise<unknown>): Promise<string | undefined> {
  return await work.then(
    () => undefined,
    (error: Error) => error.message,
  )
}

async function* chunks(text: string) {
  yield text
}

async function until(isReached: () => boolean): Promise<void> {
  for (let attempts = 0; !isReached(); attempts++) {
    if (attempts > 100) throw new Error('The server did not start')
    await new Promise(resolve => setTimeout(resolve, 100))
  }
}
