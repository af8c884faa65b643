import { createInterface } from 'node:readline/promises'

/** Whether the command can ask for confirmation. */
export function isInteractive(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}

/** Asks for a `yes` on standard error. Anything else is a no, including Ctrl-C and Ctrl-D. */
export async function ask(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  console.error()
  const closed = new Promise<string>(resolve => terminal.once('close', () => resolve('')))
  try {
    const answer = await Promise.race([terminal.question(`${question} Type yes to continue: `), closed])
    return answer.trim().toLowerCase() === 'yes'
  } catch {
    return false
  } finally {
    terminal.close()
  }
}
