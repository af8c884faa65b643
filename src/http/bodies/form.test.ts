import { Readable } from 'node:stream'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Problem } from '../../kernel/errors.ts'
import { FormFile } from './form.ts'

const boundary = 'a-b'
const type = `multipart/form-data; boundary=${boundary}`
const head = 'content-disposition: form-data; name="file"; filename="list.csv"\r\ncontent-type: text/csv'

async function fileIn(chunks: Buffer[], contentType = type) {
  const parts: object[] = []
  const form = new FormFile(contentType, part => parts.push(part))
  const bytes = Buffer.concat(await Readable.from(chunks).pipe(form).toArray())
  return { parts, bytes }
}

// The characters of a boundary, so that files are full of partial boundaries.
const content = fc
  .array(fc.constantFrom('\r', '\n', '\r\n', '-', '--', 'a', 'a-b', '\r\n--a-', 'x'), { maxLength: 20 })
  .map(pieces => pieces.join(''))
  .filter(text => !`\r\n${text}`.includes(`\r\n--${boundary}`))

test('a file is extracted from its form unchanged, regardless of the chunks of the body', async () => {
  await fc.assert(
    fc.asyncProperty(content, fc.array(fc.nat(200), { maxLength: 6 }), async (text, cuts) => {
      const body = Buffer.from(`--${boundary}\r\n${head}\r\n\r\n${text}\r\n--${boundary}--\r\n`)
      const places = [0, ...cuts.toSorted((a, b) => a - b), body.length]
      const chunks = places.slice(1).map((to, index) => body.subarray(places[index], to))
      const { parts, bytes } = await fileIn(chunks.filter(chunk => chunk.length > 0))
      expect(parts).toEqual([{ mediaType: 'text/csv', name: 'list.csv' }])
      expect(bytes.toString()).toBe(text)
    }),
    { numRuns: 500 },
  )
})

test('forms written by browsers and by Node are accepted', async () => {
  const form = new FormData()
  form.append('file', new File(['email\r\n'], 'my "list".csv', { type: 'text/csv' }))
  const { headers, body } = new Response(form)
  const chunks: Buffer[] = []
  for await (const chunk of body ?? []) chunks.push(Buffer.from(chunk))
  const { parts, bytes } = await fileIn(chunks, headers.get('content-type') ?? '')
  expect(parts).toEqual([{ mediaType: 'text/csv', name: 'my %22list%22.csv' }])
  expect(bytes.toString()).toBe('email\r\n')
})

test.each([
  ['endless boundaries', '--a-b\r\n\r\n'.repeat(400_000)],
  ['endless parts', `--a-b\r\n${head}\r\n\r\n\r\n`.repeat(50_000)],
  ['endless part headers', `--a-b\r\n${'x: y\r\n'.repeat(700_000)}`],
  ['bytes of an endless header', `--a-b\r\ncontent-disposition: form-data; filename="${'\\"'.repeat(2_000_000)}`],
  ['endless bytes before the form', 'x'.repeat(4 * 1024 * 1024)],
  ['endless bytes after the form', `--a-b\r\n${head}\r\n\r\n\r\n--a-b--\r\n${'x'.repeat(4 * 1024 * 1024)}`],
])('%s are refused where they begin', async (_, body) => {
  const bytes = Buffer.from(body)
  const chunks = Array.from({ length: Math.ceil(bytes.length / 65_536) }, (_, index) =>
    bytes.subarray(index * 65_536, (index + 1) * 65_536),
  )
  let taken = 0
  const source = Readable.from(
    (function* () {
      for (const chunk of chunks) {
        taken += 1
        yield chunk
      }
    })(),
  )
  const form = new FormFile(type, () => undefined)
  await expect(source.pipe(form).toArray()).rejects.toThrow(Problem)
  expect(taken).toBeLessThan(20)
})
