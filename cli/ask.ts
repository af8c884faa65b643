import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { terminal, writeErrorLine } from './terminal.ts'

/** Whether the command can ask for confirmation. */
export function isInteractive(): boolean {
  const { stdin, stderr } = terminal()
  return stdin.isTTY === true && stderr.isTTY === true
}

/** Asks for a `yes` on standard error. Anything else is a no, including Ctrl-C and Ctrl-D. */
export async function ask(question: string): Promise<boolean> {
  const { stdin, stderr } = terminal()
  const prompt = createInterface({ input: stdin, output: stderr })
  writeErrorLine()
  const closed = new Promise<string>(resolve => prompt.once('close', () => resolve('')))
  try {
    const answer = await Promise.race([prompt.question(`${question} Type yes to continue: `), closed])
    return answer.trim().toLowerCase() === 'yes'
  } catch {
    return false
  } finally {
    prompt.close()
  }
}

/**
 * Asks for a line on the terminal without showing it.
 * @throws Error if the person gives up with Ctrl-C or Ctrl-D
 */
export async function askSecret(question: string): Promise<string> {
  const { stdin, stderr } = terminal()
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  // Without a terminal as its output, readline would not stop the terminal from showing what is typed.
  const prompt = createInterface({ input: stdin, output: silent, terminal: true })
  stderr.write(question)
  const closed = new Promise<undefined>(resolve => prompt.once('close', () => resolve(undefined)))
  try {
    const answer = await Promise.race([prompt.question(''), closed])
    if (answer === undefined) throw new Error('Nothing was entered; nothing was done')
    return answer
  } finally {
    prompt.close()
    writeErrorLine()
  }
}
