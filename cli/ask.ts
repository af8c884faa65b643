import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { Interrupted, terminal, writeErrorLine } from './terminal.ts'

/** @property isSecret whether the typed text is hidden */
type Question = { text: string; isSecret?: boolean }

/** Whether the command can ask for confirmation. */
export function isInteractive(): boolean {
  const { stdin, stderr } = terminal()
  return stdin.isTTY === true && stderr.isTTY === true
}

/** Asks for a `yes` on standard error. Anything else means no, including Ctrl-D. @throws Interrupted after Ctrl-C */
export async function ask(question: string): Promise<boolean> {
  writeErrorLine()
  const [answer = ''] = await askInTurn([{ text: `${question} Type yes to continue: ` }])
  return answer.trim().toLowerCase() === 'yes'
}

/**
 * Asks for a line per question. Lines that are pasted together answer the questions in turn, and a secret among them stays hidden.
 * @returns the answers, which after Ctrl-D are fewer than the questions
 * @throws Interrupted after Ctrl-C
 */
export async function askInTurn(questions: readonly Question[]): Promise<string[]> {
  const { stdin, stderr } = terminal()
  let isShown = true
  const output = new Writable({
    write(chunk, _encoding, done) {
      if (isShown) stderr.write(chunk)
      done()
    },
  })
  // With `terminal`, readline turns the echo of the terminal off and writes its own to the output.
  const prompt = createInterface({ input: stdin, output, terminal: true, historySize: 0 })
  const answers: string[] = []
  return await new Promise((resolve, reject) => {
    // Synchronous, because readline echoes the rest of a paste as soon as this returns.
    const askNext = () => {
      isShown = true
      const question = questions[answers.length]
      if (question === undefined) return prompt.close()
      prompt.setPrompt(question.text)
      prompt.prompt()
      isShown = !question.isSecret
    }
    prompt.on('line', line => {
      if (!isShown) stderr.write('\n')
      answers.push(line)
      askNext()
    })
    prompt.on('SIGINT', () => {
      stderr.write('\n')
      reject(new Interrupted())
      prompt.close()
    })
    prompt.on('close', () => resolve(answers))
    askNext()
  })
}
