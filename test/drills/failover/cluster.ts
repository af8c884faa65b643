import { spawn } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { serverUser } from '@midmonth/embedded-postgres'
import pg from 'pg'
import { createMachine, createNetwork, type Machine, output } from './machines.ts'

// The files that docs/operations/high-availability.md tells operators to install, with their addresses.
const files = fileURLToPath(new URL('../../../deploy/ha/', import.meta.url))
const addresses = { 'db-1': '10.77.0.11', 'db-2': '10.77.0.12', 'db-3': '10.77.0.13' }
const etcdAddresses = { 'etcd-1': '10.77.0.21', 'etcd-2': '10.77.0.22', 'etcd-3': '10.77.0.23' }
const ownAddress = '10.77.0.1'
const passwords = { SUPERUSER_PASSWORD: 'superuser', REPLICATION_PASSWORD: 'replication', REWIND_PASSWORD: 'rewind' }
const appPassword = 'app'
// Bootstrapping copies the primary twice; a rewind and its restart take a few seconds.
const wholeMsMax = 120_000

type Member = { name: string; role: 'leader' | 'sync_standby' | 'replica'; state: string; timeline?: number }

/** Three machines with Patroni and PostgreSQL, three with etcd, and an HAProxy on the drill's. */
export type Cluster = {
  machines: Machine[]
  /** The machines of etcd. */
  etcd: Machine[]
  /** How long Patroni's lease lasts. */
  ttlSeconds: number
  /** The addresses of a database: through HAProxy, and with all hosts. */
  addressOf(role: 'app' | 'owner', database: string, by: 'proxy' | 'hosts' | 'replica'): string
  createDatabase(name: string): Promise<void>
  /** The machine that holds the lease. */
  primary(): Promise<Machine>
  syncStandby(): Promise<Machine>
  /** Starts Patroni on a machine. */
  start(machine: Machine): void
  /** Waits until every machine follows the primary, one of them synchronously. */
  whole(): Promise<void>
  patronictl(...args: string[]): Promise<string>
}

/** @param folder accessible to the user `postgres` */
export async function createCluster({ folder, logs }: { folder: string; logs: string }): Promise<Cluster> {
  const { uid, gid } = serverUser(path.join(folder, 'db-1'))
  const own = (made: string, mode: number) => {
    chmodSync(made, mode)
    chownSync(made, uid, gid)
  }
  createNetwork(ownAddress)
  const machines = await Promise.all(Object.entries(addresses).map(each => createMachine(...each)))
  for (const { name, address } of machines) {
    mkdirSync(path.join(folder, name, 'run'), { recursive: true })
    const values = { ...passwords, NAME: name, ADDRESS: address }
    const patroni = filled('patroni.yaml', values)
      .replaceAll('/var/lib/postgresql/15/midmonth', path.join(folder, name, 'postgres'))
      .replaceAll('/var/lib/postgresql/.pgpass_patroni', path.join(folder, name, 'pgpass'))
      .replaceAll('/var/run/postgresql', path.join(folder, name, 'run'))
      .replaceAll('/usr/lib/postgresql/15/bin', newestBinaries())
    writeFileSync(path.join(folder, name, 'patroni.yaml'), patroni)
    for (const made of ['', 'run']) own(path.join(folder, name, made), 0o700)
    own(path.join(folder, name, 'patroni.yaml'), 0o600)
  }
  const ttlSeconds = Number(/^ +ttl: (\d+)$/m.exec(readFileSync(path.join(files, 'patroni.yaml'), 'utf8'))?.[1])

  function start(machine: Machine): void {
    const config = path.join(folder, machine.name, 'patroni.yaml')
    machine.start(['patroni', config], { log: path.join(logs, `${machine.name}.log`) })
  }

  async function members(): Promise<Member[]> {
    for (const { address } of machines) {
      try {
        const response = await fetch(`http://${address}:8008/cluster`, { signal: AbortSignal.timeout(1_000) })
        const { members } = (await response.json()) as { members: Member[] }
        return members
      } catch {
        // Down; another machine answers.
      }
    }
    return []
  }

  async function machineOf(role: Member['role']): Promise<Machine> {
    const name = (await members()).find(member => member.role === role)?.name
    const machine = machines.find(each => each.name === name)
    if (machine === undefined) throw new Error(`No machine is the ${role}`)
    return machine
  }

  async function isWhole(): Promise<boolean> {
    const found = await members()
    const roles = found.map(({ role }) => role).toSorted()
    const isRunning = found.every(({ state }) => state === 'running' || state === 'streaming')
    const timelines = new Set(found.map(({ timeline }) => timeline))
    return roles.join() === 'leader,replica,sync_standby' && isRunning && timelines.size === 1
  }

  const addressOf: Cluster['addressOf'] = (role, database, by) => {
    const hosts = machines.map(({ address }) => `${address}:5432`).join()
    const host = { proxy: '127.0.0.1:5000', replica: '127.0.0.1:5001', hosts }[by]
    const attributes = by === 'hosts' ? '?target_session_attrs=read-write' : ''
    return `postgres://midmonth_${role}:${appPassword}@${host}/${database}${attributes}`
  }

  async function asSuperuser(statement: string): Promise<void> {
    const { address: host } = await machineOf('leader')
    const client = new pg.Client({
      host,
      user: 'postgres',
      password: passwords.SUPERUSER_PASSWORD,
      database: 'postgres',
    })
    await client.connect()
    await client.query(statement).finally(() => client.end())
  }

  async function whole(): Promise<void> {
    const deadline = Date.now() + wholeMsMax
    while (!(await isWhole())) {
      if (Date.now() > deadline)
        throw new Error(`The cluster is not whole after ${wholeMsMax / 1_000} s: ${JSON.stringify(await members())}`)
      await sleep(200)
    }
  }

  const etcd: Machine[] = []
  for (const [name, address] of Object.entries(etcdAddresses)) {
    const machine = await createMachine(name, address)
    etcd.push(machine)
    const data = path.join(folder, name)
    mkdirSync(data)
    own(data, 0o700)
    const settings = filled('etcd.env', { NAME: name, ADDRESS: address }).matchAll(/^(ETCD_\w+)=(.*)$/gm)
    const env = Object.fromEntries([...settings].map(([, key = '', value = '']) => [key, value]))
    machine.start(['etcd'], { log: path.join(logs, `${name}.log`), env: { ...env, ETCD_DATA_DIR: data } })
  }
  for (const machine of machines) start(machine)
  const proxyLog = openSync(path.join(logs, 'haproxy.log'), 'a')
  spawn('haproxy', ['-db', '-f', path.join(files, 'haproxy.cfg')], { stdio: ['ignore', proxyLog, proxyLog] })
  await whole()
  for (const role of ['owner', 'app', 'read'])
    await asSuperuser(`create role midmonth_${role} login password '${appPassword}'`)

  return {
    machines,
    etcd,
    ttlSeconds,
    addressOf,
    createDatabase: name => asSuperuser(`create database ${name} owner midmonth_owner`),
    primary: () => machineOf('leader'),
    syncStandby: () => machineOf('sync_standby'),
    start,
    whole,
    patronictl: (...args) => output('patronictl', ['-c', path.join(folder, 'db-1/patroni.yaml'), ...args]),
  }
}

/** Reads a file of deploy/ha and fills in what an operator fills in. */
function filled(name: string, values: Record<string, string>): string {
  const text = readFileSync(path.join(files, name), 'utf8')
  return text.replaceAll(/@([A-Z_]+)@/g, (_, key) => values[key] ?? `@${key}@`)
}

// Any version of the packages will do: 15 is Debian 12's.
function newestBinaries(): string {
  const [newest] = readdirSync('/usr/lib/postgresql').sort((a, b) => Number(b) - Number(a))
  return `/usr/lib/postgresql/${newest}/bin`
}
