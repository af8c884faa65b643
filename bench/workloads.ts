import type { Load } from './wrk.ts'

/** What is measured, by name; README.md says what each is for. */
export type Workload = {
  requests: Load['requests']
  /** Spread over a hundred partners with a key each, instead of one. */
  isOfHundred?: true
  /** All on one member. */
  isHot?: true
  /** Which part of the requests completes an intent, and so needs one that was made before. */
  completing: number
}

export const workloads = {
  intent: { requests: 'intent', completing: 0 },
  'intent-key': { requests: 'intent-key', completing: 0 },
  'intent-100': { requests: 'intent', isOfHundred: true, completing: 0 },
  'intent-hot': { requests: 'intent', isHot: true, completing: 0 },
  complete: { requests: 'complete', completing: 1 },
  'complete-key': { requests: 'complete-key', completing: 1 },
  'complete-hot': { requests: 'complete', isHot: true, completing: 1 },
  mixed: { requests: 'mixed', completing: 0.2 },
} as const satisfies Record<string, Workload>

export type WorkloadName = keyof typeof workloads
