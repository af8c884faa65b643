import { ApiError, ConnectionError, MidmonthError } from '../../packages/sdk/src/errors.ts'
import { reasonOf } from '../../src/kernel/text.ts'
import { setExitCode, writeErrorLine } from '../terminal.ts'

/** The exit codes of the commands that call the API. Documented in docs/reference/cli.md. */
export const exitCodes = { refused: 1, wrongUsage: 2, unavailable: 4, unknownOutcome: 5 } as const

/** Settings or arguments are wrong; nothing was sent. */
export class WrongUsage extends Error {}

/** The service cannot be reached, or no longer answers. Nothing that the command was asked to change is in doubt. */
export class Unavailable extends MidmonthError {}

/** The response to a change is not from Midmonth: the change may or may not have taken effect. */
export class ForeignAnswer extends MidmonthError {
  readonly idempotencyKey: string

  constructor(message: string, { idempotencyKey }: { idempotencyKey: string }) {
    super(message)
    this.idempotencyKey = idempotencyKey
  }
}

/** The response to a change was lost: the change may or may not have taken effect. The message says how to find out. */
export class UnknownOutcome extends Error {}

/** Explains an error of a command that calls the API in sentences, without a stack or a key, and sets the exit code. */
export function reportFailure(error: unknown): void {
  const { code, lines } = explain(error)
  setExitCode(code)
  const [first = '', ...more] = lines
  writeErrorLine(`midmonth: ${first}`)
  for (const line of more) writeErrorLine(`  ${line}`)
}

// More would scroll the first ones off the screen.
const issuesShownMax = 20

function explain(error: unknown): { code: number; lines: string[] } {
  if (error instanceof ApiError) return explainRefusal(error)
  if (error instanceof WrongUsage) return { code: exitCodes.wrongUsage, lines: [error.message] }
  if (error instanceof UnknownOutcome) return { code: exitCodes.unknownOutcome, lines: [error.message] }
  if (error instanceof Unavailable) return { code: exitCodes.unavailable, lines: [error.message] }
  if (error instanceof ConnectionError || error instanceof ForeignAnswer) {
    const { code, hints } = afterLostAnswer(error)
    return { code, lines: [error.message, ...hints] }
  }
  // The error of fetch for a file whose body breaks off. Files are only read.
  if (error instanceof TypeError && error.message === 'terminated')
    return { code: exitCodes.unavailable, lines: ['The connection broke before the whole file had arrived'] }
  return { code: exitCodes.refused, lines: [reasonOf(error)] }
}

/** Only a change has an idempotency key; without one, nothing is in doubt. */
function afterLostAnswer({ idempotencyKey }: { idempotencyKey: string | undefined }): {
  code: number
  hints: string[]
} {
  if (idempotencyKey === undefined) return { code: exitCodes.unavailable, hints: [] }
  const hint = `It may have taken effect. Its idempotency key is ${idempotencyKey}.`
  return { code: exitCodes.unknownOutcome, hints: [hint] }
}

function explainRefusal(error: ApiError): { code: number; lines: string[] } {
  const { issues, status, requestId } = error
  // A gateway that gives up responds with 504 after the service has received the request.
  const { code, hints } = status >= 500 ? afterLostAnswer(error) : { code: exitCodes.refused, hints: [] }
  const details = `HTTP ${status}, request ${requestId}`
  if (issues.length === 0) return { code, lines: [reasonOfForeign(status), details, ...hints] }
  const [first, ...more] = issues.slice(0, issuesShownMax).map(({ message }) => message)
  const rest = issues.length > issuesShownMax ? [`and ${issues.length - issuesShownMax} more`] : []
  return { code, lines: [`${first}${hintFor(status)}`, ...more, ...rest, `${error.code}, ${details}`, ...hints] }
}

function reasonOfForeign(status: number): string {
  return status >= 500
    ? 'The response is not from Midmonth, but from a gateway before it'
    : 'The response is not from Midmonth; check the address'
}

function hintFor(status: number): string {
  return status === 401 ? '; run midmonth login, or set the key with MIDMONTH_API_KEY or --key' : ''
}
