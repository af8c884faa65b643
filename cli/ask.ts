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
  writeErrorLine()
  const answer = await askFor(`${question} Type yes to continue: `)
  return answer.trim().toLowerCase() === 'yes'
}

/** Asks for a line. @returns an empty text after Ctrl-C or Ctrl-D */
export async function askFor(question: string): Promise<string> {
  const { stdin, stderr } = terminal()
  return await readAnswer(question, createInterface({ input: stdin, output: stderr }))
}

/** Asks for a line that the terminal does not show. @returns an empty text after Ctrl-C or Ctrl-D */
export async function askForSecret(question: string): Promise<string> {
  const { stdin, stderr } = terminal()
  stderr.write(question)
  // With `terminal`, readline turns the echo of the terminal off; its own goes to this output, which drops it.
  const output = new Writable({ write: (_chunk, _encoding, done) => done() })
  const answer = await readAnswer('', createInterface({ input: stdin, output, terminal: true }))
  writeErrorLine()
  return answer
}

async function readAnswer(question: string, prompt: ReturnType<typeof createInterface>): Promise<string> {
  const closed = new Promise<string>(resolve => prompt.once('close', () => resolve('')))
  try {
    return await Promise.race([prompt.question(question), closed])
  } catch {
    return ''
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
