import pg from 'pg'
import { expect, test } from 'vitest'
import { withoutPersonalData } from '../../cli/log.ts'

test('a logged error names the constraint but never the row that violated it', () => {
  const error = new pg.DatabaseError(
    'duplicate key value violates unique constraint "one_member_per_email"',
    0,
    'error',
  )
  Object.assign(error, {
    code: '23505',
    constraint: 'one_member_per_email',
    detail: 'Key (email)=(sam@example.com) already exists.',
    where: 'sam@example.com',
    parameters: ['sam@example.com'],
  })
  const logged = withoutPersonalData(new Error('It failed', { cause: error }))
  expect(logged.cause).toMatchObject({ type: 'DatabaseError', code: '23505', constraint: 'one_member_per_email' })
  expect(JSON.stringify(logged)).not.toContain('sam@example.com')
})

test('a value that PostgreSQL rejects is not logged', () => {
  const error = Object.assign(new Error('invalid input syntax for type date: "Sam Okafor"'), { code: '22007' })
  expect(JSON.stringify(withoutPersonalData(error))).not.toContain('Okafor')
})
