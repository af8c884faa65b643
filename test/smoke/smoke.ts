import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { freePort } from '../servers/free-port.ts'

// A new user's first minutes, in a fresh copy of the checkout, in a folder that only its owner can access: npm start before
// npm install, the README's first command, the printed request as pasted, a CLI command, and a second start without dev
// dependencies. No process may be left running.
const run = promisify(execFile)
const checkout = fileURLToPath(new URL('../..', import.meta.url))

const home = await mkdtemp(path.join(homedir(), '.midmonth-smoke-'))
const copy = path.join(home, 'midmonth')
const dataDir = path.join('/tmp', `${path.basename(home)}-data`)
try {
  await copyCheckout()
  const port = await freePort()
  const env = environment(port)
  const tooEarly = await run('npm', ['start'], { cwd: copy, env }).catch(error => error)
  assert.match(tooEarly.stderr, /midmonth: Dependencies are not installed: run npm install in \S+ first\n/)

  const command = firstCommand(await readFile(path.join(copy, 'README.md'), 'utf8'))
  await withService(command, env, async printed => {
    const curl = printed.slice(printed.indexOf('curl'), printed.indexOf('Press Ctrl-C')).trim()
    const { stdout: response } = await run('sh', ['-c', curl])
    console.log(response)
    const intent = JSON.parse(response)
    assert.match(intent.withdrawalIntentId, /^wi_/)
    assert.equal(typeof intent.netAmount.amount, 'number')

    const page = await fetch(`http://127.0.0.1:${port}/docs`)
    assert.equal(page.status, 200)
    assert.match(page.headers.get('content-type') ?? '', /text\/html/)

    const { stdout: partners } = await run('npx', ['midmonth', 'partner', 'list'], { cwd: copy, env })
    assert.match(partners, /^id +name.*\npar_\S+ +Acme Couriers/)
  })
  await withService('npm install --omit=dev && npm start', env, async printed => {
    assert(!existsSync(path.join(copy, 'node_modules/vitest')))
    assert.match(printed, /Test key +mm_test_/)
  })
} finally {
  for (const folder of [dataDir, `${dataDir}-key`]) await rm(folder, { recursive: true, force: true })
  await rm(home, { recursive: true, force: true })
}

/** Runs a command that starts the service, waits for its banner, does `work`, and stops it with Ctrl-C. */
async function withService(
  command: string,
  env: NodeJS.ProcessEnv,
  work: (printed: string) => Promise<void>,
): Promise<void> {
  console.log(`$ ${command}`)
  const service = spawn('sh', ['-c', command], {
    cwd: copy,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  })
  try {
    await work(await bannerOf(service))
  } finally {
    // Ctrl-C in a terminal reaches the whole group.
    signalGroup(service, 'SIGINT')
  }
  const deadline = performance.now() + 15_000
  while ((await leftRunning()).length > 0) {
    if (performance.now() > deadline) {
      signalGroup(service, 'SIGKILL')
      throw new Error(`Processes are still running: ${(await leftRunning()).join('; ')}`)
    }
    await pause(50)
  }
  console.log('stopped, no process is left running')
}

/** Copies the files that a commit would now contain: including new files, without deleted ones. */
async function copyCheckout(): Promise<void> {
  await mkdir(copy)
  const { stdout } = await run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: checkout,
  })
  for (const file of new Set(stdout.split('\0').slice(0, -1)))
    if (existsSync(path.join(checkout, file))) await cp(path.join(checkout, file), path.join(copy, file))
}

function firstCommand(readme: string): string {
  const command = /```sh\n([^\n]+)\n```/.exec(readme)?.[1]
  assert(command, 'The README has no command')
  return command
}

/** A new user's environment: without our settings, and without the Node in our node_modules. */
function environment(port: number): NodeJS.ProcessEnv {
  const ours = /^(npm_|MIDMONTH_|DATABASE_URL$|HOST$|NODE)/
  return {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.test(name))),
    PATH: process.env.PATH?.split(':')
      .filter(folder => !/node_modules|node-gyp-bin/.test(folder))
      .join(':'),
    PORT: String(port),
    // Root's default data folder is in /var/lib, where the data would be left behind.
    ...(process.getuid?.() === 0 ? { MIDMONTH_DATA_DIR: dataDir } : {}),
  }
}

/** @throws if the service exits first */
async function bannerOf(service: ChildProcess): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let printed = ''
  let startedAtMs: number | undefined
  service.on('exit', code => reject(new Error(`The service exited with code ${code} before it was ready`)))
  service.stdout?.setEncoding('utf8').on('data', (text: string) => {
    process.stdout.write(text)
    printed += text
    // npm prints the script's name right before running it.
    if (printed.includes('launch.mjs start')) startedAtMs ??= performance.now()
    if (printed.includes('Press Ctrl-C to stop.')) resolve(printed)
  })
  await promise
  // Reported, not asserted: 3 s on two idle cores, and many times that on a busy machine.
  console.log(`ready ${((performance.now() - (startedAtMs ?? 0)) / 1_000).toFixed(1)} s after npm start`)
  return printed
}

/** The command lines that contain the path of the copy or of its data folder. */
async function leftRunning(): Promise<string[]> {
  const { stdout } = await run('ps', ['-eo', 'args'])
  return stdout.split('\n').filter(line => line.includes(home) || line.includes(dataDir))
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  assert(pid)
  try {
    process.kill(-pid, signal)
  } catch {
    // The process has already exited.
  }
}
