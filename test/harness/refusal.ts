import { expect } from 'vitest'
import { citusUrl } from './citus.ts'

/**
 * What an error of the database has that breaks a constraint. A distributed PostgreSQL does not pass on the name that a node's trigger
 * gives.
 */
export function breaking(constraint: string): { constraint: string } | { code: string } {
  return citusUrl === undefined ? { constraint } : { code: expect.stringMatching(/^23/) }
}
