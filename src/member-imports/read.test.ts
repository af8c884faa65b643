import { expect, test } from 'vitest'
import { readHeader, rowReader } from './read.ts'

const { header } = readHeader(['email', 'first_name', 'last_name', 'phone', 'tier'])
const readRow = rowReader(header)
const emailFaults = (email: string) => {
  const row = readRow([email, 'Sam', 'Okafor', '', 'Silver'])
  return row.faults
}

// Existing clients validate every response against this pattern. One member that does not match would make a page of the list
// unreadable.
const published = /^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9-]*\.)+[A-Za-z]{2,}$/

test.each([
  'x@b.c',
  'x@example.com1',
  'x@example.xn--p1ai',
  '.x@example.com',
  'x.@example.com',
  'x..y@example.com',
  'x!y@example.com',
  'x@[127.0.0.1]',
])('a file is refused an e-mail that the API refuses: %s', email => {
  expect(published.test(email)).toBe(false)
  expect(emailFaults(email)).toEqual(['email: is not an e-mail address, like sam.okafor@example.com'])
})

test.each(["o'neil+x@mail.example.co.uk", 'SAM@EXAMPLE.COM', '_@a.bc', 'a-b@x-y.travel'])(
  'a file accepts an e-mail that the API accepts: %s',
  email => {
    expect(published.test(email)).toBe(true)
    expect(emailFaults(email)).toEqual([])
  },
)
