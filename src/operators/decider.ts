import type { Operator } from '../partners/operator-keys.ts'
import type { Decider } from '../payouts/books/two-people.ts'

/** Who decides, for decisions that can take two people. An operator key makes none: one person can have two keys. */
export function deciderOf({ kind, id: _, ...person }: Operator): Decider & { isKey: boolean } {
  return { ...person, isKey: kind === 'operator_key' }
}
