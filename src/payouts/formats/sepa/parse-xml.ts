import { TextDecoder } from 'node:util'
import { SaxesParser, type SaxesTagPlain } from 'saxes'
import { BankFileProblem } from '../bank-files.ts'

/** A part of a message that is read as a whole: its fields, by their path below the part. */
export type Unit = {
  line: number
  /** The first value of a field that is neither absent nor blank. */
  get(path: string): string | undefined
  /** All values of some fields, in the order of the file. */
  all(...paths: string[]): string[]
}

/** How a unit is read. `within` are the units around it, the innermost first, with the fields that came before this unit. */
type UnitReader = { fields: readonly string[]; read(unit: Unit, within: readonly Unit[]): void }

export type MessageReader = {
  /** The units of the message, by their path below the message's element. Everything else is skipped. */
  units: Readonly<Record<string, UnitReader>>
  /** Called at the end of the message. */
  end?(): void
}

// Bank messages are not even half as deep.
const depthMax = 40
// The longest text in the schemas of these messages has 2,000 characters, and a tag is shorter.
const textCharsMax = 8_000
// Further values of a repeated field are ignored: reasons and remittance lines are read by people.
const valuesMax = 20
const sliceBytes = 16_384

/**
 * Parses a bank's XML as it arrives, in flat memory, and yields after each slice. Names are compared without their prefix, so that every
 * version of a message is read. Refuses a DOCTYPE, and so all entities except the five of XML.
 * @param readerOf the reader of a message, by the name of its element; undefined if we do not read that message
 * @throws BankFileProblem
 */
export async function* parseMessage(
  bytes: AsyncIterable<Uint8Array>,
  { bytesMax, readerOf }: { bytesMax: number; readerOf: (element: string) => MessageReader | undefined },
): AsyncGenerator<undefined> {
  const parser = new SaxesParser({ xmlns: false, position: false })
  const refuse = (message: string): never => {
    throw new BankFileProblem(message, { line: parser.line })
  }
  // Characters received since the latest event: an upper bound for what the parser buffers of one text or tag.
  let held = 0
  let text = ''
  let message: { start: Step; reader: MessageReader } | undefined
  const open: { name: string; step: Step | undefined }[] = []
  const units: FieldsOfUnit[] = []

  // Six handlers: from the eighth on, V8 keeps the parser as a dictionary, and parsing takes six times as long.
  parser.on('error', error => refuse(`The XML is broken: ${error.message.slice(0, 100)}`))
  parser.on('doctype', () => refuse('A DOCTYPE is not allowed'))
  parser.on('opentag', (tag: SaxesTagPlain) => {
    held = 0
    text = ''
    if (open.length >= depthMax) refuse(`More than ${depthMax} nested elements are not allowed`)
    const name = localName(tag.name)
    const parent = open.at(-1)
    let step = parent?.step?.below.get(name)
    if (parent?.step === undefined) {
      const reader = readerOf(name)
      if (reader !== undefined) {
        if (message !== undefined) refuse('A file must hold only one message; this is a second one')
        step = stepsOf(reader.units)
        message = { start: step, reader }
      } else if (parent?.name === 'Document' && message === undefined) {
        refuse(`${name.slice(0, 50)} is not read; send pain.002, camt.052, camt.053 or camt.054`)
      }
    }
    open.push({ name, step })
    if (step?.unit !== undefined) units.push(new FieldsOfUnit(parser.line))
    const currency = tag.attributes.Ccy
    if (step?.field !== undefined && currency !== undefined) units.at(-1)?.add(`${step.field}@Ccy`, currency)
  })
  const append = (more: string) => {
    held = 0
    if (open.at(-1)?.step?.field === undefined) return
    text += more
    if (text.length > textCharsMax) refuse('The text is longer than any field may be')
  }
  parser.on('text', append)
  parser.on('cdata', append)
  parser.on('closetag', () => {
    held = 0
    const step = open.pop()?.step
    if (step?.field !== undefined) units.at(-1)?.add(step.field, text.trim())
    text = ''
    if (step !== undefined && step === message?.start) message.reader.end?.()
    if (step?.unit === undefined) return
    const unit = units.pop()
    if (unit !== undefined) step.unit.read(unit, units.toReversed())
  })

  for await (const decoded of decodedSlices(bytes, { bytesMax, refuse })) {
    held += decoded.length
    parser.write(decoded)
    if (held > textCharsMax + sliceBytes) refuse('A text or tag is longer than any field may be')
    yield
  }
  parser.close()
  if (message === undefined) refuse('The file holds no pain.002, camt.052, camt.053 or camt.054 message')
}

/** An element on the way to a unit or a field. */
type Step = { below: Map<string, Step>; unit?: UnitReader; field?: string }

function stepsOf(units: MessageReader['units']): Step {
  const top: Step = { below: new Map() }
  for (const [path, unit] of Object.entries(units)) {
    const start = stepTo(top, path)
    start.unit = unit
    for (const field of unit.fields) stepTo(start, field).field = field
  }
  return top
}

function stepTo(start: Step, path: string): Step {
  let step = start
  for (const name of path.split('/')) {
    const next = step.below.get(name) ?? { below: new Map() }
    step.below.set(name, next)
    step = next
  }
  return step
}

class FieldsOfUnit implements Unit {
  readonly line: number
  readonly #values = new Map<string, { value: string; place: number }[]>()
  #count = 0

  constructor(line: number) {
    this.line = line
  }

  add(path: string, value: string): void {
    if (value === '') return
    const values = this.#values.get(path)
    const added = { value, place: this.#count++ }
    if (values === undefined) this.#values.set(path, [added])
    else if (values.length < valuesMax) values.push(added)
  }

  get(path: string): string | undefined {
    return this.#values.get(path)?.[0]?.value
  }

  all(...paths: string[]): string[] {
    const values = paths.flatMap(path => this.#values.get(path) ?? [])
    return values.sort((a, b) => a.place - b.place).map(({ value }) => value)
  }
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1)
}

// The encodings that banks use and Node decodes. WHATWG reads the first three as windows-1252, a superset.
const encodings = ['us-ascii', 'iso-8859-1', 'windows-1252', 'iso-8859-15', 'utf-8']

/** The text in small slices, so that a chunk of any size does not outgrow the limits. */
async function* decodedSlices(
  bytes: AsyncIterable<Uint8Array>,
  { bytesMax, refuse }: { bytesMax: number; refuse: (message: string) => never },
): AsyncGenerator<string> {
  let received = 0
  let decoder: TextDecoder | undefined
  const decode = (slice?: Uint8Array) => {
    try {
      return decoder?.decode(slice, { stream: slice !== undefined }) ?? ''
    } catch {
      return refuse('The text is not in the encoding that the file declares, or not in UTF-8')
    }
  }
  let start: Uint8Array = new Uint8Array()
  for await (const chunk of bytes) {
    received += chunk.byteLength
    if (received > bytesMax) refuse(`The file is larger than ${bytesMax} bytes`)
    let rest = chunk
    if (decoder === undefined) {
      start = rest = Buffer.concat([start, chunk])
      if (start.length < declarationBytes && !start.includes(closingBracket)) continue
      decoder = decoderFor(start, refuse)
    }
    for (let from = 0; from < rest.length; from += sliceBytes) yield decode(rest.subarray(from, from + sliceBytes))
  }
  if (decoder === undefined) {
    if (received === 0) refuse('The file is empty')
    decoder = decoderFor(start, refuse)
    yield decode(start)
  }
  yield decode()
}

const closingBracket = 0x3e
// Longer than any XML declaration.
const declarationBytes = 256

function decoderFor(start: Uint8Array, refuse: (message: string) => never): TextDecoder {
  const head = Buffer.from(start.subarray(0, declarationBytes)).toString('latin1')
  if (/^(?:\xff\xfe|<\0)/.test(head)) return new TextDecoder('utf-16le', { fatal: true })
  if (/^(?:\xfe\xff|\0<)/.test(head)) return new TextDecoder('utf-16be', { fatal: true })
  const declared = /^(?:\xef\xbb\xbf)?<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]*)["']/.exec(head)?.[1] ?? 'utf-8'
  // Programs that write text convert it to UTF-8 without changing the declaration.
  const encoding = declared.toLowerCase().replace(/^utf-16$/, 'utf-8')
  if (!encodings.includes(encoding)) refuse(`The encoding ${declared.slice(0, 40)} is not read; send UTF-8`)
  return new TextDecoder(encoding, { fatal: true })
}
