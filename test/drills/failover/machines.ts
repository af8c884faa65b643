import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { closeSync, openSync, readdirSync, readlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

/**
 * A machine of the drill: a network namespace with an address on a bridge. Whatever runs in it can be killed, frozen or cut off
 * at once, like a host. The namespaces vanish with the drill.
 */
export type Machine = {
  readonly name: string
  readonly address: string
  /** Runs a daemon as the user `postgres`. */
  start(command: string[], options: { log: string; env?: Record<string, string> }): ChildProcess
  /** SIGKILL for every process: a power failure, except that the kernel still closes the connections. */
  kill(): Promise<void>
  /** Stops every process in place, as a host that hangs does. Its kernel still acknowledges packets. */
  freeze(): void
  thaw(): void
  /** Drops all packets to and from the machine. Connections are not closed. */
  cut(): void
  reconnect(): void
}

const run = (command: string, args: string[]) => execFileSync(command, args, { stdio: 'pipe' })

/** Creates the bridge that joins the machines. The drill itself is at its first address. */
export function createNetwork(address: string): void {
  run('ip', ['link', 'set', 'lo', 'up'])
  run('ip', ['link', 'add', bridge, 'type', 'bridge'])
  run('ip', ['address', 'add', `${address}/24`, 'dev', bridge])
  run('ip', ['link', 'set', bridge, 'up'])
}

const bridge = 'drill0'

export async function createMachine(name: string, address: string): Promise<Machine> {
  const holder = spawn('unshare', ['--net', 'sleep', 'infinity'], { stdio: 'ignore' })
  const own = readlinkSync('/proc/self/ns/net')
  const namespace = () => readlinkSync(`/proc/${holder.pid}/ns/net`)
  while (namespace() === own) await sleep(5)
  const inside = [`--net=/proc/${holder.pid}/ns/net`]
  const port = `to-${name}`
  run('ip', ['link', 'add', port, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(holder.pid)])
  run('ip', ['link', 'set', port, 'master', bridge, 'up'])
  for (const setting of [
    ['link', 'set', 'lo', 'up'],
    ['address', 'add', `${address}/24`, 'dev', 'eth0'],
    ['link', 'set', 'eth0', 'up'],
  ])
    run('nsenter', [...inside, 'ip', ...setting])
  const net = namespace()

  const processes = () =>
    readdirSync('/proc')
      .filter(pid => /^[0-9]+$/.test(pid) && Number(pid) !== holder.pid && isIn(pid, net))
      .map(Number)
  const signal = (name: NodeJS.Signals) => {
    for (const pid of processes()) {
      try {
        process.kill(pid, name)
      } catch {
        // It has ended in the meantime.
      }
    }
  }

  return {
    name,
    address,
    start(command, { log, env = {} }) {
      const file = openSync(log, 'a')
      const asPostgres = ['setpriv', '--reuid=postgres', '--regid=postgres', '--init-groups']
      const child = spawn('nsenter', [...inside, ...asPostgres, ...command], {
        cwd: '/',
        env: { PATH: process.env.PATH, LANG: 'C.UTF-8', ...env },
        stdio: ['ignore', file, file],
      })
      closeSync(file)
      return child
    },
    async kill() {
      while (processes().length > 0) {
        signal('SIGKILL')
        await sleep(10)
      }
    },
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    cut: () => void run('ip', ['link', 'set', port, 'down']),
    reconnect: () => void run('ip', ['link', 'set', port, 'up']),
  }
}

function isIn(pid: string, net: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`) === net
  } catch {
    // It has ended, or is a zombie, whose namespace is gone.
    return false
  }
}

/** Runs a program of the packages on the drill's own machine. @returns its output */
export async function output(command: string, args: string[]): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)(command, args)
  return stdout + stderr
}
