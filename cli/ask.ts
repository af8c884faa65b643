import { createInterface } from 'node:readline/promises'

/** Whether somebody is there who can be asked. */
export function isAnybodyThere(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}

/** Asks for the word `yes`, on standard error. Anything else, Ctrl-C and Ctrl-D included, is a no. */
export async function ask(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  console.error()
  const closed = new Promise<string>(resolve => terminal.once('close', () => resolve('')))
  try {
    const answer = await Promise.race([terminal.question(`${question} Type yes to go on: `), closed])
    return answer.trim().toLowerCase() === 'yes'
  } catch {
    return false
  } finally {
    terminal.close()
  }
}
