import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import net from 'node:net'
import { homedir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

// What a newcomer does: the README's first command in a fresh copy of the checkout, in a folder that only its owner can
// enter, and then the request that it prints, pasted as it stands. Then everything must be gone.
const run = promisify(execFile)
const checkout = fileURLToPath(new URL('../..', import.meta.url))

const home = await mkdtemp(path.join(homedir(), '.openwage-smoke-'))
const copy = path.join(home, 'openwage')
const port = await freePort()
try {
  await mkdir(copy)
  const { stdout: tracked } = await run('git', ['ls-files', '-z'], { cwd: checkout })
  for (const file of tracked.split('\0').filter(name => name !== ''))
    await cp(path.join(checkout, file), path.join(copy, file))

  const command = firstCommand(await readFile(path.join(copy, 'README.md'), 'utf8'))
  console.log(`$ ${command}`)
  const dataDir = path.join('/tmp', `${path.basename(home)}-data`)
  const openwage = spawn('sh', ['-c', command], {
    cwd: copy,
    // Another data folder only for root, so that nothing stays behind in /var/lib.
    env: { ...process.env, PORT: String(port), ...(process.getuid?.() === 0 ? { OPENWAGE_DATA_DIR: dataDir } : {}) },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  })
  let printed = ''
  let startedAt = 0
  const ready = new Promise<void>((resolve, reject) => {
    openwage.on('exit', code => reject(new Error(`It ended with exit code ${code} before it was ready`)))
    openwage.stdout.setEncoding('utf8').on('data', (text: string) => {
      process.stdout.write(text)
      printed += text
      // npm prints the script just before it runs it.
      if (startedAt === 0 && printed.includes('openwage.ts start')) startedAt = performance.now()
      if (printed.includes('Ctrl-C stops it.')) resolve()
    })
  })
  await ready
  console.log(`ready ${((performance.now() - startedAt) / 1_000).toFixed(1)} s after npm start`)

  const curl = printed.slice(printed.indexOf('curl'), printed.indexOf('Ctrl-C')).trim()
  const { stdout: answer } = await run('sh', ['-c', curl])
  console.log(answer)
  const intent = JSON.parse(answer)
  assert.match(intent.withdrawalIntentId, /^wi_/)
  assert.equal(typeof intent.netAmount.amount, 'number')

  const page = await fetch(`http://127.0.0.1:${port}/docs`)
  assert.equal(page.status, 200)
  assert.match(page.headers.get('content-type') ?? '', /text\/html/)

  const ended = new Promise(resolve => openwage.on('exit', resolve))
  assert(openwage.pid)
  // Ctrl-C in a terminal reaches the whole group.
  process.kill(-openwage.pid, 'SIGINT')
  await ended
  // A command line would show the folder of whatever is left.
  const { stdout: processes } = await run('ps', ['-eo', 'args'])
  assert(
    !processes.includes(dataDir) && !processes.split('\n').some(line => line.includes(copy)),
    'Something is left running',
  )
  await rm(dataDir, { recursive: true, force: true })
  console.log('stopped, and nothing is left running')
} finally {
  await rm(home, { recursive: true, force: true })
}

function firstCommand(readme: string): string {
  const command = /```sh\n([^\n]+)\n```/.exec(readme)?.[1]
  assert(command, 'The README has no command')
  return command
}

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const address = server.address()
  assert(address !== null && typeof address === 'object')
  await new Promise(resolve => server.close(resolve))
  return address.port
}
