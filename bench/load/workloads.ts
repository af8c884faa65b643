import type { Load } from './wrk.ts'

/** What is measured; README.md says what each is for. */
export type Workload = {
  requests: Load['requests']
  /** Spread over a hundred partners with a key each, instead of one. */
  isOfHundred?: true
  /** All on one member. */
  isHot?: true
  /** Which part of the requests completes an intent, and so needs one that was made before. */
  completing: number
  /** Which part of the requests writes an intent or a withdrawal. */
  writing: number
}

const named = {
  intent: { requests: 'intent', completing: 0, writing: 1 },
  'intent-key': { requests: 'intent-key', completing: 0, writing: 1 },
  'intent-100': { requests: 'intent', isOfHundred: true, completing: 0, writing: 1 },
  'intent-hot': { requests: 'intent', isHot: true, completing: 0, writing: 1 },
  complete: { requests: 'complete', completing: 1, writing: 1 },
  'complete-key': { requests: 'complete-key', completing: 1, writing: 1 },
  'complete-hot': { requests: 'complete', isHot: true, completing: 1, writing: 1 },
  mixed: { requests: 'mixed', completing: 0.2, writing: 0.9 },
} as const satisfies Record<string, Workload>

export type WorkloadName = keyof typeof named
export const workloads: Record<WorkloadName, Workload> = named
