import { Person } from '../../components/person.tsx'
import { Time } from '../../components/values.tsx'
import type { Rail } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { useLoaded } from '../../query.ts'

/** The connected banks. A sandbox without a connected bank pays through the simulated bank. */
export function useRails(): Rail[] {
  return useLoaded('operator-rails', () => operators.listRails()).value?.rails ?? []
}

type Hold = { since: string | null; by: string | null; reason: string | null }

/** Says when a hold began, who set it and why. */
export function HeldBy({ hold: { since, by, reason } }: { hold: Hold }) {
  return (
    <span>
      by <Person who={by} />
      {since !== null && (
        <>
          {' '}
          since <Time at={since} />
        </>
      )}
      {reason !== null && `: ${reason}`}
    </span>
  )
}
