import { odd } from './xml.ts'

/**
 * The shared strings of a workbook, of which there may be millions. Stored as bytes outside the JavaScript heap, at eight bytes
 * plus its length per string.
 */
export class SharedStrings {
  private readonly blocks: Buffer[] = []
  private used = blockBytes
  private places = new Float64Array(1024)
  private count = 0

  add(text: string): void {
    const bytes = Buffer.byteLength(text)
    const size = lengthBytes + bytes
    if (this.used + size > blockBytes) {
      this.blocks.push(Buffer.allocUnsafeSlow(Math.max(blockBytes, size)))
      this.used = 0
    }
    const block = this.blocks.length - 1
    const buffer = this.blocks[block] as Buffer
    buffer.writeUInt32LE(bytes, this.used)
    buffer.write(text, this.used + lengthBytes)
    if (this.count === this.places.length) {
      const places = new Float64Array(this.count * 2)
      places.set(this.places)
      this.places = places
    }
    this.places[this.count++] = block * blockBytes + this.used
    this.used += size
  }

  /** @throws FileFault if there is no such text */
  get(index: number): string {
    const place = index < this.count ? this.places[index] : undefined
    if (place === undefined) throw odd(1)
    const buffer = this.blocks[Math.floor(place / blockBytes)] as Buffer
    const at = place % blockBytes
    return buffer.toString('utf8', at + lengthBytes, at + lengthBytes + buffer.readUInt32LE(at))
  }
}

const blockBytes = 1024 * 1024
const lengthBytes = 4
