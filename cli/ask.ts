import { createInterface } from 'node:readline/promises'
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
