import { api } from '../api.ts'
import { dayIn } from '../days.ts'
import { useLoaded } from '../query.ts'
import { isSandbox, timeZone } from '../session.ts'

/** Today's calendar day in the partner's time zone, by the sandbox clock if there is one. */
export function useToday(): string {
  const { value } = useLoaded(isSandbox.value ? 'sandbox-clock' : null, () => api.sandbox.clock.get())
  return dayIn(timeZone.value, value === undefined ? new Date() : new Date(value.now))
}
