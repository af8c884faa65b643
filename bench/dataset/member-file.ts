import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { check } from '../../src/bank-accounts/rules.ts'

/** The columns of the file, in order. */
export const columns = [
  ...['email', 'first_name', 'last_name', 'phone', 'tier', 'worker_id'],
  ...['sort_code', 'account_number', 'account_holder'],
]

/** One row in this many has another phone number in the changed file. */
export const changeEvery = 100

/**
 * Writes a complete list of members as a payroll system exports it. Deterministic.
 * @param isChanged every hundredth member has another phone number
 */
export async function writeMemberFile(
  file: string,
  { rows, isChanged }: { rows: number; isChanged: boolean },
): Promise<void> {
  await pipeline(Readable.from(textOf({ rows, isChanged })), createWriteStream(file))
}

// Enough lines to make a write worthwhile.
const linesAtOnce = 1_000

function* textOf({ rows, isChanged }: { rows: number; isChanged: boolean }): Generator<string> {
  yield `${columns.join(',')}\r\n`
  const accounts = [...someAccounts()]
  let lines = ''
  for (let number = 0; number < rows; number++) {
    const first = of(firstNames, number * 7)
    const last = of(lastNames, number * 13)
    const { sortCode, accountNumber } = of(accounts, number)
    const email = `${plain(first)}.${plain(last)}${number}@example.com`
    const phone = `+447${isChanged && number % changeEvery === 0 ? 8 : 7}${String(number).padStart(8, '0')}`
    const tier = number % 5 === 0 ? 'Silver' : 'Bronze'
    lines += `${email},${first},${last},${phone},${tier},W${number},${sortCode},${accountNumber},${first} ${last}\r\n`
    if (number % linesAtOnce !== linesAtOnce - 1) continue
    yield lines
    lines = ''
  }
  yield lines
}

/** Strips accents and converts to lower case. */
function plain(name: string): string {
  return name.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase()
}

function of<T>(list: T[], number: number): T {
  const found = list[number % list.length]
  if (found === undefined) throw new Error('The list is empty')
  return found
}

const firstNames = 'Ada Sam Zoë Ravi Noor Jack Mary Iwan Lena Tom Eva Omar Kofi Ines Ben Anna Yusuf Chloé Max'.split(
  ' ',
)
const lastNames = 'Okafor Smith Jones Patel Evans Müller Khan Brown Walsh Silva Ito Novak Ali Berg Reid Lopez'.split(
  ' ',
)

// Sort codes whose account numbers are checked by modulus 10, by modulus 11, and by two checks that must both pass.
const sortCodes = ['089999', '107999', '202959', '401234', '600001', '774100', '938611', '871427']
const accountsOfEach = 1_000

function* someAccounts(): Generator<{ sortCode: string; accountNumber: string }> {
  for (const sortCode of sortCodes) {
    // 7919 is a prime, so the numbers are scattered.
    for (let tried = 0, found = 0; found < accountsOfEach && tried < 1e6; tried++) {
      const accountNumber = String(10_000_000 + ((tried * 7_919) % 90_000_000))
      if (check({ accountHolder: '', sortCode, accountNumber }) === 'invalid') continue
      found += 1
      yield { sortCode, accountNumber }
    }
  }
}
