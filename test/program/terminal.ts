import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, vi } from 'vitest'
import { baseEnvironment, type Environment } from './program.ts'

const children = new Set<ChildProcess>()

/** Runs a command interactively: `script` gives it a pseudo-terminal. */
export function inTerminal(args: string[], settings: Environment) {
  const command = [process.execPath, new URL('../../cli/midmonth.ts', import.meta.url).pathname, ...args]
  const quoted = command.map(word => `'${word}'`).join(' ')
  const child = spawn(
    'script',
    process.platform === 'linux' ? ['-qec', `exec ${quoted}`, '/dev/null'] : ['-q', '/dev/null', ...command],
    {
      env: { ...baseEnvironment, TERM: 'dumb', ...settings },
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  )
  children.add(child)
  let screen = ''
  child.stdout.setEncoding('utf8').on('data', text => {
    screen += text
  })
  return {
    screen: () => screen,
    says: (text: string) => vi.waitFor(() => expect(screen).toContain(text), { timeout: 45_000, interval: 20 }),
    type: (text: string) => child.stdin.write(`${text}\n`),
    pressCtrlC: () => child.stdin.write('\x03'),
    ended: once(child, 'close').then(() => child.exitCode),
  }
}

/** Kills processes that the tests left running. */
export function closeTerminals(): void {
  for (const child of children) child.kill('SIGKILL')
  children.clear()
}
