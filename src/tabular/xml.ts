import { SaxesParser, type SaxesTagPlain } from 'saxes'
import { FileFault } from './fault.ts'
import { limits } from './limits.ts'

export type Attributes = Record<string, string | undefined>

/** Handlers for the parts of an XML document. Names are passed without their prefix. */
type Handlers = {
  open?(name: string, attributes: Attributes): void
  close?(name: string): void
  text?(text: string): void
}

/**
 * Parses XML as it arrives. Refuses XML that no spreadsheet writes: entity declarations, comments and other markup that some
 * parsers treat as the end of a text, and texts, tags and nesting beyond the limits.
 * @param row returns the current row, for the fault
 * @throws FileFault
 */
export async function parseXml(
  chunks: AsyncIterable<Buffer>,
  handlers: Handlers,
  { row = () => 1 }: { row?: () => number } = {},
): Promise<void> {
  for await (const _ of parseXmlInSteps(chunks, handlers, { row }));
}

/** Like `parseXml`, but yields after each chunk. */
export async function* parseXmlInSteps(
  chunks: AsyncIterable<Buffer>,
  handlers: Handlers,
  { row }: { row: () => number },
): AsyncGenerator<undefined> {
  const parser = new SaxesParser({ xmlns: false, position: false })
  // Characters received since the latest event: an upper bound for the part of a text or tag that the parser buffers.
  let held = 0
  let depth = 0
  const refuse = () => {
    throw odd(row())
  }
  // Five handlers: from the eighth on, V8 keeps the parser as a dictionary, and parsing takes three times as long.
  parser.on('error', refuse)
  parser.on('processinginstruction', refuse)
  parser.on('opentag', (tag: SaxesTagPlain) => {
    held = 0
    depth += 1
    if (depth > limits.tagDepthMax) refuse()
    handlers.open?.(localName(tag.name), withoutPrefixes(tag.attributes))
  })
  parser.on('closetag', (tag: SaxesTagPlain) => {
    held = 0
    depth -= 1
    handlers.close?.(localName(tag.name))
  })
  parser.on('text', (value: string) => {
    if (value.length > limits.textCharsMax) throw tooLong(row())
    handlers.text?.(value)
  })
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const decode = (chunk?: Buffer) => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined })
    } catch {
      throw odd(row())
    }
  }
  let lastChar = ''
  for await (const chunk of chunks) {
    const decoded = decode(chunk)
    held += decoded.length
    // `<!` begins a DOCTYPE, a comment or CDATA, and nothing else in XML. It may be split between two chunks.
    const refusedAt = decoded.indexOf(lastChar === '<' && decoded.startsWith('!') ? '!' : '<!')
    lastChar = decoded.at(-1) ?? lastChar
    parser.write(refusedAt === -1 ? decoded : decoded.slice(0, refusedAt))
    if (refusedAt !== -1) refuse()
    if (held > limits.textCharsMax + chunk.length) throw tooLong(row())
    yield
  }
  decode()
  parser.close()
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1)
}

// Almost no workbook has prefixes.
function withoutPrefixes(attributes: Record<string, string>): Attributes {
  let hasPrefix = false
  for (const name in attributes) hasPrefix ||= name.includes(':')
  if (!hasPrefix) return attributes
  const entries = Object.entries(attributes).map(([name, value]) => [localName(name), value] as const)
  // Of two duplicate attributes, some parsers use the first, others the last.
  if (new Set(entries.map(([name]) => name)).size < entries.length) throw odd(1)
  return Object.fromEntries(entries)
}

/** @param row the last row that could be read */
export function odd(row: number): FileFault {
  return new FileFault(row, 'The workbook is written in an unusual way; open it in a spreadsheet and save it again')
}

function tooLong(row: number): FileFault {
  return new FileFault(row, 'The workbook contains a text that is longer than any cell may be; delete it')
}
