import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'
import { Settings } from '../../src/config.ts'
import { until } from '../crash/until.ts'
import { freePort } from '../servers/free-port.ts'
import { createPostgres } from '../servers/postgres.ts'

// Builds the image and runs it as compose.yaml does, and checks the files in deploy/: `npm run deploy`.

const checkout = fileURLToPath(new URL('../..', import.meta.url))
const at = (name: string) => path.join(checkout, name)
const run = (command: string, args: string[]) =>
  execFileSync(command, args, {
    cwd: checkout,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 2 ** 26,
  })
const isInstalled = (command: string) => {
  try {
    run('sh', ['-c', `command -v ${command}`])
    return true
  } catch {
    return false
  }
}

checkFiles()
checkUnits()
if (isInstalled('haproxy')) await checkAffinity()
else console.log('Skipped the proxy: haproxy not found; install it (Debian: apt-get install haproxy)')
if (isInstalled('podman')) await checkImage()
else console.log('Skipped the image: podman not found; install it (Debian: apt-get install podman runc debootstrap)')

/** Every image has an exact tag, and every variable of the containers is a setting. */
function checkFiles(): void {
  const [compose] = parseAllDocuments(readFileSync(at('compose.yaml'), 'utf8'), { merge: true }).map(each =>
    each.toJS(),
  )
  const services = Object.entries<{ image: string; environment?: Record<string, string> }>(compose.services)
  expect('compose.yaml runs two APIs, a worker and what they need', services.length === 7)
  for (const [name, { image, environment = {} }] of services) {
    expect(
      `the image of ${name} has an exact tag`,
      /:(v?\d+\.\d+(\.\d+)?(-[a-z]+)?(@sha256:[0-9a-f]{64})?|\$\{MIDMONTH_VERSION:-\d+\.\d+\.\d+\})$/.test(image),
    )
    const unknown = Object.keys(environment).filter(key => key.startsWith('MIDMONTH_') && !(key in Settings.properties))
    expect(
      `every MIDMONTH_ variable of ${name} is a setting${unknown.map(each => ` but ${each}`).join()}`,
      unknown.length === 0,
    )
  }
  const { version } = JSON.parse(readFileSync(at('package.json'), 'utf8'))
  expect(
    'compose.yaml names the version',
    readFileSync(at('compose.yaml'), 'utf8').includes(`MIDMONTH_VERSION:-${version}}`),
  )
  const asked = [...readFileSync(at('compose.yaml'), 'utf8').matchAll(/\$\{([A-Z_]+):\?/g)].map(match => match[1])
  const given = readFileSync(at('deploy/compose/example.env'), 'utf8')
  expect(
    'the example has every variable',
    asked.every(name => given.includes(`${name}=`)),
  )
  const folder = at('deploy/kubernetes')
  const [kustomization] = parseAllDocuments(readFileSync(path.join(folder, 'kustomization.yaml'), 'utf8'))
  for (const resource of kustomization?.toJS().resources ?? []) {
    for (const document of parseAllDocuments(readFileSync(path.join(folder, resource), 'utf8'))) {
      const { apiVersion, kind, metadata } = document.toJS()
      expect(`${resource}: ${kind} is complete`, document.errors.length === 0 && Boolean(apiVersion && metadata.name))
    }
  }
}

/** The proxy sends a key to one API, spreads keys over both, and sends all to the other when one is lost. */
async function checkAffinity(): Promise<void> {
  const apis = ['api-1', 'api-2'].map(name => createServer((_, response) => response.end(name)))
  const ports = await Promise.all([...apis.map(() => freePort()), freePort()])
  await Promise.all(apis.map((api, index) => once(api.listen(ports[index], '127.0.0.1'), 'listening')))
  const folder = mkdtempSync(path.join(tmpdir(), 'midmonth-proxy-'))
  const file = path.join(folder, 'haproxy.cfg')
  writeFileSync(
    file,
    readFileSync(at('deploy/citus/haproxy.cfg'), 'utf8')
      .replace('10.77.0.31:8080', `127.0.0.1:${ports[0]}`)
      .replace('10.77.0.32:8080', `127.0.0.1:${ports[1]}`)
      .replace('127.0.0.1:8000', `127.0.0.1:${ports[2]}`),
  )
  const proxy = spawn('haproxy', ['-db', '-f', file], { stdio: 'ignore' })
  const ask = async (key: string) => {
    const response = await fetch(`http://127.0.0.1:${ports[2]}/v1/tiers`, { headers: { 'x-api-key': key } })
    return response.ok ? await response.text() : ''
  }
  const keys = Array.from({ length: 40 }, (_, index) => `mm_test_${index}`)
  const askAll = () => Promise.all(keys.map(ask))
  try {
    await until(async () => (await askAll().catch(() => [''])).every(name => name !== ''), 'the proxy answers')
    const first = await askAll()
    expect('the proxy uses both APIs', new Set(first).size === 2)
    expect('the proxy sends a key to the same API', (await askAll()).join() === first.join())
    apis[0]?.close()
    apis[0]?.closeAllConnections()
    await until(
      async () => (await askAll().catch(() => [''])).every(name => name === 'api-2'),
      'the proxy sends the keys of a lost API to the other',
    )
  } finally {
    proxy.kill('SIGTERM')
    for (const api of apis) {
      api.close()
      api.closeAllConnections()
    }
    rmSync(folder, { recursive: true })
  }
}

function checkUnits(): void {
  if (!isInstalled('systemd-analyze')) {
    console.log('Skipped the units: systemd-analyze not found')
    return
  }
  for (const unit of readdirSync(at('deploy/systemd'))) {
    // The exposure of at most 3 of 10.
    const printed = run('systemd-analyze', ['security', '--offline=true', '--threshold=30', `deploy/systemd/${unit}`])
    console.log(printed.trim().split('\n').at(-1)?.trim())
  }
}

async function checkImage(): Promise<void> {
  const base = /^ARG BASE=([^@\s]+)(@\S+)?$/m.exec(readFileSync(at('Dockerfile'), 'utf8'))?.[1] ?? ''
  const folder = mkdtempSync(path.join(tmpdir(), 'midmonth-deploy-'))
  chmodSync(folder, 0o755)
  const image = 'localhost/midmonth-test'
  const containers: string[] = []
  const logs = path.join(folder, 'logs')
  mkdirSync(logs)
  const postgres = await createPostgres({ folder, logs })
  try {
    if (!findBase(base, folder)) return
    build(image, { base, folder })
    const bytes = (name: string) => Number(run('podman', ['image', 'inspect', '--format', '{{.Size}}', name]))
    const addedMb = Math.round((bytes(image) - bytes(base)) / 1e6)
    expect(`the image is ${addedMb} MB above its base, at most 250`, addedMb <= 250)

    await postgres.start()
    chmodSync(path.join(folder, 'sockets'), 0o755)
    const key = path.join(folder, 'key')
    mkdirSync(key)
    run('chown', ['1000:1000', key])
    const ports = { api: await freePort(), worker: await freePort() }
    const settings = {
      ...{ DATABASE_URL: postgres.url, HOST: '127.0.0.1', MIDMONTH_MODE: 'sandbox' },
      ...{
        PORT: `${ports.api}`,
        MIDMONTH_HEALTH_PORT: `${ports.worker}`,
        MIDMONTH_METRICS_TOKEN: 'a-token-of-this-check',
      },
    }
    const isolation = [
      // Read-only, without rights, as in compose.yaml.
      ...['--read-only', '--tmpfs', '/tmp', '--cap-drop', 'all', '--security-opt', 'no-new-privileges'],
      ...[
        '--network',
        'host',
        '--volume',
        `${folder}/sockets:${folder}/sockets`,
        '--volume',
        `${key}:/var/lib/midmonth`,
      ],
      // Where the limits of the machine may not be raised.
      ...['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=1000:1000', '--no-healthcheck'],
    ]
    const start = (args: string[], given: Record<string, string>, options: string[] = ['--rm']) =>
      run('podman', [
        ...[...runtime(), 'run', ...options, ...isolation],
        ...Object.entries(given).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
        ...[image, ...args],
      ])
    start(['migrate'], { ...settings, DATABASE_OWNER_URL: postgres.ownerUrl })
    expect('migrate made the key', existsSync(path.join(key, 'installation.key')))
    for (const role of ['api', 'worker'] as const) {
      const name = `midmonth-test-${role}-${process.pid}`
      containers.push(name)
      start(['start', `--${role}`], settings, ['--detach', '--name', name])
      await until(() => isReady(ports[role]), `the ${role} is ready`)
      console.log(`the ${role} is ready`)
    }
    start(['partner', 'create', 'Acme'], settings)
    const printed = start(['partner', 'list'], settings)
    expect('commands run in the container', printed.includes('Acme'))
    const metrics = await fetch(`http://127.0.0.1:${ports.api}/metrics`, {
      headers: { authorization: `Bearer ${settings.MIDMONTH_METRICS_TOKEN}` },
    })
    expect('the API sees the worker', (await metrics.text()).includes('midmonth_workers_alive 1\n'))
    const [api = ''] = containers
    const inside = (code: string) => run('podman', [...runtime(), 'exec', api, 'node', '-p', code]).trim()
    expect('it does not run as root', inside('process.getuid()') === '1000')
    expect(
      'its program cannot be written',
      inside("try { fs.writeFileSync('/app/x', ''); 'written' } catch (e) { e.code }") === 'EROFS',
    )
    for (const name of containers) {
      run('podman', [...runtime(), 'stop', '--time', '15', name])
      const code = run('podman', ['inspect', '--format', '{{.State.ExitCode}}', name]).trim()
      expect(`${name} stops in time`, code === '0')
    }
  } finally {
    for (const name of containers) remove(['rm', '--force', '--time', '1', name])
    remove(['image', 'rm', '--force', image])
    await postgres.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Some machines have control groups that only runc accepts. */
function runtime(): string[] {
  return isInstalled('runc') ? ['--runtime', 'runc'] : []
}

/** Fetches the base image, or makes one of Debian's packages and this Node where no registry of images answers. */
function findBase(base: string, folder: string): boolean {
  try {
    run('podman', ['image', 'exists', base])
    return true
  } catch {}
  try {
    run('podman', ['pull', '--quiet', base])
    return true
  } catch {}
  if (!isInstalled('debootstrap')) {
    console.log(`Skipped the image: ${base} cannot be fetched, and debootstrap is not installed`)
    return false
  }
  console.log(`${base} cannot be fetched: an image of Debian's packages and this Node takes its place`)
  const root = path.join(folder, 'root')
  run('debootstrap', ['--variant=minbase', 'bookworm', root])
  run('cp', [process.execPath, path.join(root, 'usr/local/bin/node')])
  const modules = run('npm', ['root', '--global']).trim()
  run('sh', [
    '-c',
    `mkdir -p ${root}/usr/local/lib/node_modules && cp -a ${modules}/npm ${root}/usr/local/lib/node_modules/`,
  ])
  for (const name of ['npm', 'npx'])
    run('ln', ['-s', `../lib/node_modules/npm/bin/${name}-cli.js`, path.join(root, 'usr/local/bin', name)])
  run('sh', ['-c', `tar -C ${root} -c . | podman import - ${base}`])
  return true
}

/** Builds with the registry and the certificates that this machine is set up for. */
function build(image: string, { base, folder }: { base: string; folder: string }): void {
  const registry = run('npm', ['config', 'get', 'registry']).trim()
  const certificates = process.env.NODE_EXTRA_CA_CERTS
  const npmrc = path.join(folder, 'npmrc')
  writeFileSync(npmrc, [`registry=${registry}`, ...(certificates ? ['cafile=/certificates.pem'] : [])].join('\n'))
  run('podman', [
    ...['build', '--isolation', 'chroot', '--network', 'host', '--format', 'docker', '--tag', image],
    // Without the digest, which an image made here does not have.
    ...['--build-arg', `BASE=${base}`],
    ...['--volume', `${npmrc}:/usr/local/etc/npmrc:ro`],
    ...(certificates ? ['--volume', `${certificates}:/certificates.pem:ro`] : []),
    '.',
  ])
}

async function isReady(port: number): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined)
  return response?.ok ?? false
}

function expect(what: string, holds: boolean): void {
  if (!holds) throw new Error(`Not so: ${what}`)
  console.log(what)
}

function remove(args: string[]): void {
  try {
    run('podman', args)
  } catch {}
}
