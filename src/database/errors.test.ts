import pg from 'pg'
import { expect, test } from 'vitest'
import { brokenConstraint, isUniqueViolation, nameConstraint, outageOutcome } from './errors.ts'

test('the constraint that a node of a distributed PostgreSQL reports is named without its shard', () => {
  // As a coordinator passes them on: without the field of the constraint.
  const reported = (code: string, message: string, detail?: string) => {
    const error = new pg.DatabaseError(message, message.length, 'error')
    Object.assign(error, { code, detail })
    nameConstraint(error)
    return [brokenConstraint(error), isUniqueViolation(error)]
  }
  const unique = 'duplicate key value violates unique constraint "one_member_per_email_102080"'
  const foreign =
    'insert or update on table "metadata_102120" violates foreign key constraint "metadata_member_fkey_102120"'
  expect(reported('23505', unique)).toEqual(['one_member_per_email', true])
  expect(reported('23503', foreign)).toEqual(['metadata_member_fkey', false])
  // From the copy of rows to a node, and from a trigger there.
  expect(reported('XX000', unique)).toEqual(['one_member_per_email', true])
  for (const code of ['23514', 'XX000'])
    expect(reported(code, 'withdrawals is append-only', 'constraint "append_only"')).toEqual(['append_only', false])
  expect(reported('XX000', 'could not find the node')).toEqual([undefined, false])
})

test('a statement whose shard was split while it waited was not run', () => {
  const error = new pg.DatabaseError('could not find valid entry for shard 102217', 43, 'error')
  error.code = 'XX000'
  expect(outageOutcome(error)).toBe('nothing-done')
})
