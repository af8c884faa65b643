import { api } from '../api.ts'
import { useLoaded } from '../query.ts'
import { isSandbox } from '../session.ts'

/** The time of the partner: on a sandbox, its clock may have been moved. */
export function useNow(): Date {
  const { value } = useLoaded(isSandbox.value ? 'sandbox-clock' : null, () => api.sandbox.clock.get())
  return value === undefined ? new Date() : new Date(value.now)
}
