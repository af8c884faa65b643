import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Readable, Writable } from 'node:stream'

/** What a command reads and writes: the process's own streams and environment, or those of a caller that runs it in process. */
export type Terminal = {
  env: NodeJS.ProcessEnv
  stdin: Readable & { isTTY?: boolean }
  stdout: Writable & { isTTY?: boolean; columns?: number }
  stderr: Writable & { isTTY?: boolean }
}

/** The person pressed Ctrl-C at a question. */
export class Interrupted extends Error {}

// A context, not an argument: what commands call (help texts, tables, prompts, progress) would hand it on at every level.
const running = new AsyncLocalStorage<Terminal & { exitCode: number }>()

/** Runs a command with a terminal. @returns its exit code: 0, unless it set another one */
export async function withTerminal(terminal: Terminal, command: () => Promise<void>): Promise<number> {
  const context = { ...terminal, exitCode: 0 }
  await running.run(context, command)
  return context.exitCode
}

/** The terminal of the running command. */
export function terminal(): Terminal {
  return context()
}

export function setExitCode(code: number): void {
  context().exitCode = code
}

export function writeLine(text = ''): void {
  context().stdout.write(`${text}\n`)
}

export function writeErrorLine(text = ''): void {
  context().stderr.write(`${text}\n`)
}

function context() {
  const found = running.getStore()
  assert(found !== undefined, 'No command is running')
  return found
}
