import { api } from '../api.ts'
import { dayIn } from '../days.ts'
import { useLoaded } from '../query.ts'
import { isSandbox, timeZone } from '../session.ts'

/** The calendar day where the partner is. On a sandbox, its clock may have been moved. */
export function useToday(): string {
  const { value } = useLoaded(isSandbox.value ? 'sandbox-clock' : null, () => api.sandbox.clock.get())
  return dayIn(timeZone.value, value === undefined ? new Date() : new Date(value.now))
}
