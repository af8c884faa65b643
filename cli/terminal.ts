import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Readable, Writable } from 'node:stream'

/** The streams and environment of a command: the process's own, or those of a caller that runs the command in process. */
export type Terminal = {
  env: NodeJS.ProcessEnv
  stdin: Readable & { isTTY?: boolean }
  stdout: Writable & { isTTY?: boolean; columns?: number; rows?: number }
  stderr: Writable & { isTTY?: boolean }
}

/** The person pressed Ctrl-C at a question. */
export class Interrupted extends Error {}

// A context, not an argument: help texts, tables, prompts and progress would have to pass it on at every level.
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
