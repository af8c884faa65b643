const minuteMs = 60_000

// By the first wait a call that was cut off has ended. Some rails report days later, so outages and slow rails are polled
// once an hour at most.
const waitMs = { first: 2 * minuteMs, max: 60 * minuteMs, slow: 24 * 60 * minuteMs }

type Poll = { attempts: number; now: Date; random: number; isSlow?: boolean | undefined }

/**
 * When to poll the bank (again) about a withdrawal without a final report: exponential back-off with jitter. It is also
 * the lease of the worker that claimed the withdrawal: if that worker is killed, another one takes over then.
 * @param attempts earlier calls to the bank about it
 * @param random 0 to 1: cuts the wait by up to half, so that withdrawals that failed together are not retried together
 * @param isSlow the rail answers days later: after the first poll, which finds out whether the submission arrived, one a day
 */
export function nextPollAt({ attempts, now, random, isSlow = false }: Poll): Date {
  const backOffMs = Math.min(waitMs.max, waitMs.first * 2 ** Math.min(attempts, 10))
  const ms = isSlow && attempts > 0 ? waitMs.slow : backOffMs
  return new Date(now.getTime() + ms * (1 - random / 2))
}

/** The back-off of the withdrawals that are claimed now. */
export function backOffFrom(now: Date, { isSlow }: { isSlow?: boolean } = {}): (attempts: number) => Date {
  return attempts => nextPollAt({ attempts, now, random: Math.random(), isSlow })
}
