import { expect, test } from 'vitest'
import { parseXml } from './xml.ts'

async function* chunksOf(text: string, size: number): AsyncGenerator<Buffer> {
  for (let from = 0; from < text.length; from += size) yield Buffer.from(text.slice(from, from + size))
}

test.each([
  ['a DOCTYPE', '<!DOCTYPE a><a/>'],
  ['a comment', '<a><b/>1<!-- -->2</a>'],
  ['CDATA', '<a><b/>1<![CDATA[2]]></a>'],
  ['a processing instruction', '<a><b/>1<?stop?>2</a>'],
])('%s is refused however the document is split into chunks, after what precedes it', async (_, text) => {
  for (let size = 1; size <= text.length; size++) {
    let row = 1
    const handlers = { close: () => (row += 1) }
    const fault = parseXml(chunksOf(text, size), handlers, { row: () => row })
    const precedes = text.includes('<b/>') ? 2 : 1
    await expect(fault, `chunks of ${size}`).rejects.toMatchObject({ row: precedes })
  }
})

test('texts and tags are the same however the document is split into chunks', async () => {
  const text = '<?xml version="1.0"?><x:a n="&lt;!-- 1"><b>2 &lt;! 3!</b></x:a>'
  for (let size = 1; size <= text.length; size++) {
    let read = ''
    await parseXml(chunksOf(text, size), {
      open: (name, { n = '' }) => (read += `[${name} ${n}]`),
      text: value => (read += value),
      close: name => (read += `[/${name}]`),
    })
    expect(read, `chunks of ${size}`).toBe('[a <!-- 1][b ]2 <! 3![/b][/a]')
  }
})
