import { Readable, Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { table, wrapped } from './print.ts'
import { withTerminal, writeLine } from './terminal.ts'

/** The output on a terminal of a width; without a width, in a file. */
async function shown(rows: Parameters<typeof table>[0], columns?: number): Promise<string> {
  let text = ''
  const stdout = new Writable({
    write(chunk, _encoding, done) {
      text += chunk
      done()
    },
  })
  const output = Object.assign(stdout, columns === undefined ? {} : { isTTY: true, columns })
  const streams = { env: {}, stdin: Readable.from([]), stdout: output, stderr: new Writable() }
  await withTerminal(streams, async () => writeLine(table(rows)))
  return text
}

const rows = [
  { name: 'Ann', email: 'ann@example.com' },
  { name: 'Zoë', email: 'z@example.com' },
  { name: '李小龍', email: 'li@example.com' },
]

test('columns line up whatever the letters: accents take no column, Chinese characters take two', async () => {
  expect(await shown([...rows, { name: 'e\u0301a', email: 'e@example.com' }])).toBe(
    [
      'name    email',
      'Ann     ann@example.com',
      'Zoë     z@example.com',
      '李小龍  li@example.com',
      'e\u0301a      e@example.com\n',
    ].join('\n'),
  )
})

test('rows that are wider than the terminal are shown as a line per field, with nothing cut, and a file always gets a table', async () => {
  const narrow = await shown(rows.slice(0, 2), 20)
  expect(narrow).toBe('name   Ann\nemail  ann@example.com\n\nname   Zoë\nemail  z@example.com\n')
  const asTable = 'name  email\nAnn   ann@example.com\nZoë   z@example.com\n'
  for (const columns of [21, 0, undefined]) expect(await shown(rows.slice(0, 2), columns)).toBe(asTable)
})

test('a control character in a value cannot move the cursor or begin a line', async () => {
  expect(await shown([{ name: 'a\u001b[2Jb\nc\r\u0007' }])).toBe('name\na�[2Jb�c��\n')
})

test.each([
  ['abcdef', 2, ['ab', 'cd', 'ef']],
  ['ab c', 1, ['a', 'b', 'c']],
  ['李小龍', 1, ['李', '小', '龍']],
  ['李小龍', 3, ['李', '小', '龍']],
  ['abcdefgh', 6, ['abcdef', '  gh']],
])('%s is wrapped in a window of %i columns, however narrow', (line, width, parts) => {
  expect(wrapped(line, width)).toEqual(parts)
})
