import { isUtf8 } from 'node:buffer'
import { FileFault } from './fault.ts'
import { limits } from './limits.ts'

/** Walks over the tags of one part of a workbook, without making anything of them. */
export class Tags {
  private readonly xml: Buffer
  // The tag begins with its < and ends with its >; the text before it begins behind the tag before it.
  private textFrom = 0
  private from = 0
  private to = -1
  private depth = 0

  constructor(xml: Buffer) {
    if (!isUtf8(xml)) throw odd(1)
    this.xml = xml
  }

  /**
   * @returns false behind the last tag
   * @throws FileFault for what no spreadsheet writes: entities of its own, comments and whatever else would cut a text in two
   * for some readers, and tags and texts that do not end
   */
  next(): boolean {
    this.textFrom = this.to + 1
    this.from = this.xml.indexOf(less, this.textFrom)
    if (this.from === -1) return false
    if (this.from - this.textFrom > limits.textBytesMax) throw tooLong()
    this.to = this.endOfTag()
    const first = this.xml[this.from + 1]
    if (first === question && this.from <= byteOrderMarkBytes) return this.next()
    if (first === exclamation || first === question) throw odd(1)
    if (this.isEnd) this.depth--
    else if (!this.isWhole && ++this.depth > limits.tagDepthMax) throw odd(1)
    return true
  }

  get isEnd(): boolean {
    return this.xml[this.from + 1] === slash
  }

  /** Whether it is begin and end at once. */
  get isWhole(): boolean {
    return this.xml[this.to - 1] === slash
  }

  /** Whether it has this name, with or without a prefix. */
  is(name: string): boolean {
    let end = this.from + 1 + (this.isEnd ? 1 : 0)
    let from = end
    for (; !isEndOfName(this.xml[end]); end++) if (this.xml[end] === colon) from = end + 1
    if (end - from !== name.length) return false
    for (let index = 0; index < name.length; index++)
      if (this.xml[from + index] !== name.charCodeAt(index)) return false
    return true
  }

  get text(): string {
    return this.xml.toString('latin1', this.from, this.to + 1)
  }

  get textBefore(): string {
    return this.xml.toString('utf8', this.textFrom, this.from)
  }

  private endOfTag(): number {
    let quote: number | undefined
    for (let at = this.from + 1; at - this.from < limits.tagBytesMax; at++) {
      const byte = this.xml[at]
      if (byte === quote) quote = undefined
      else if (quote !== undefined) {
        // Where such a tag ends is told differently by different readers.
        if (byte === less || byte === greater || byte === undefined) throw odd(1)
      } else if (byte === greater) return at
      else if (byte === singleQuote || byte === doubleQuote) quote = byte
      else if (byte === undefined || byte === less) throw odd(1)
    }
    throw tooLong()
  }
}

const less = 0x3c
const greater = 0x3e
const slash = 0x2f
const question = 0x3f
const exclamation = 0x21
const colon = 0x3a
const doubleQuote = 0x22
const singleQuote = 0x27
const byteOrderMarkBytes = 3

function isEndOfName(byte: number | undefined): boolean {
  return byte === undefined || byte <= 0x20 || byte === slash || byte === greater
}

/** @returns the attributes of a tag, without prefixes; of several with one name, the first */
export function attributesOf(tag: string): Record<string, string | undefined> {
  const pairs = [...tag.matchAll(/\s(?:[\w.-]+:)?([\w.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g)]
  return Object.fromEntries(pairs.reverse().map(([, name, double, single]) => [name, decoded(double ?? single ?? '')]))
}

function decoded(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|apos);/g, (_, name: keyof typeof entities) => entities[name])
}
const entities = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** @param row the last one that could be understood */
export function odd(row: number): FileFault {
  return new FileFault(row, 'The workbook is written in an unusual way; open it in a spreadsheet and save it again')
}

function tooLong(): FileFault {
  return new FileFault(1, 'The workbook holds a text that is longer than any cell may be; delete it')
}
