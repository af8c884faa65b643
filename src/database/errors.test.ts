import pg from 'pg'
import { expect, test } from 'vitest'
import { brokenConstraint, outageOutcome } from './errors.ts'

test('the constraint that a node of a distributed PostgreSQL reports is named without its shard', () => {
  // As a coordinator passes them on: without the field of the constraint.
  const reported = (code: string, message: string) => {
    const error = new pg.DatabaseError(message, message.length, 'error')
    error.code = code
    return brokenConstraint(error)
  }
  const unique = 'duplicate key value violates unique constraint "one_member_per_email_102080"'
  const foreign =
    'insert or update on table "metadata_102120" violates foreign key constraint "metadata_member_fkey_102120"'
  expect(reported('23505', unique)).toBe('one_member_per_email')
  expect(reported('23503', foreign)).toBe('metadata_member_fkey')
  expect(reported('XX000', unique)).toBeUndefined()
})

test('a statement whose shard was split while it waited was not run', () => {
  const error = new pg.DatabaseError('could not find valid entry for shard 102217', 43, 'error')
  error.code = 'XX000'
  expect(outageOutcome(error)).toBe('nothing-done')
})
