import { setTimeout as pause } from 'node:timers/promises'

const limits = {
  attemptsMax: 3,
  attemptMsMax: 5_000,
  // Doubled after each attempt.
  delayMs: 200,
}

export type Reply = { status: number; text: string }

/**
 * Sends a request until it gets a reply, with a limit of time per attempt. Redirects are not followed, because they would take
 * the credentials elsewhere. Safe to repeat: no request of a key provider changes anything there.
 * @param place names the provider in the message
 * @param request made anew for each attempt, because a signature has a time
 * @param options.isBusy whether a reply asks to try again later; a status of 429 or 5XX always does
 * @returns the last reply
 * @throws Error if there is none
 */
export async function exchange(
  place: string,
  request: () => Promise<Request> | Request,
  {
    attemptMsMax = limits.attemptMsMax,
    isBusy = () => false,
  }: { attemptMsMax?: number; isBusy?: (reply: Reply) => boolean } = {},
): Promise<Reply> {
  for (let attempt = 1; ; attempt += 1) {
    const reply = await send(await request(), attemptMsMax).catch((error: Error) => error)
    const isFinal = !(reply instanceof Error) && !isBusy(reply) && !isUnavailable(reply)
    if (attempt === limits.attemptsMax || isFinal) {
      if (!(reply instanceof Error)) return reply
      throw new Error(`${place} cannot be reached (${reasonOf(reply)})`, { cause: reply })
    }
    await pause(limits.delayMs * 2 ** (attempt - 1) * (0.5 + Math.random() / 2))
  }
}

/** Whether a service says that it cannot answer now. */
export function isUnavailable({ status }: Reply): boolean {
  return status === 429 || status >= 500
}

async function send(request: Request, attemptMsMax: number): Promise<Reply> {
  const response = await fetch(request, { redirect: 'manual', signal: AbortSignal.timeout(attemptMsMax) })
  return { status: response.status, text: await response.text() }
}

/** The body of a reply; undefined if it is not JSON of that shape. */
export function parse<Body>({ text }: Reply, isBody: (value: unknown) => value is Body): Body | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isBody(value) ? value : undefined
  } catch {
    return undefined
  }
}

// fetch hides the reason in the cause, and wraps the failures of several addresses once more.
function reasonOf(error: Error): string {
  const { cause } = error
  if (cause instanceof AggregateError) return String(cause.errors[0]?.message)
  return cause instanceof Error ? cause.message : error.message
}
