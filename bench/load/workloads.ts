import type { Load } from './wrk.ts'

/** A kind of load to measure; README.md says what each one is for. */
export type Workload = {
  requests: Load['requests']
  /** Whether the requests are spread over a hundred partners, each with an API key, instead of one. */
  isOfHundred?: true
  /** Whether all requests are for the same member. */
  isHot?: true
  /** The share of requests that complete an intent and so need one created beforehand. */
  completing: number
  /** The share of requests that write an intent or a withdrawal. */
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
