import { randomInt } from 'node:crypto'
import { limits } from '../tabular/tabular.ts'

/**
 * Remembers the texts of a column in four bytes each, to tell whether one may have come twice. "No" is certain; "yes" is wrong
 * for one large file in some thousand. PostgreSQL takes three seconds to say the same of a million rows.
 */
export class DuplicateFilter {
  mayHaveRepeated = false
  // Fingerprints, each at its place or right behind. More than twice as many places as rows, so that those are few; the
  // memory is not taken before it is written to.
  private readonly fingerprints = new Uint32Array(places)

  add(text: string): void {
    // FNV-1a, and beside it the same with another prime, since place and fingerprint must not depend on each other.
    let fingerprint = seed ^ 0x811c9dc5
    let place = seed
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index)
      fingerprint = Math.imul(fingerprint ^ code, 0x01000193)
      place = Math.imul(place ^ code, 0x5bd1e995)
      place ^= place >>> 15
    }
    // 0 is an empty place.
    fingerprint = fingerprint >>> 0 || 1
    for (place &= places - 1; this.fingerprints[place] !== 0; place = (place + 1) & (places - 1)) {
      if (this.fingerprints[place] !== fingerprint) continue
      this.mayHaveRepeated = true
      return
    }
    this.fingerprints[place] = fingerprint
  }
}

// Random, so that texts cannot be chosen to collide.
const seed = randomInt(0x8000_0000)
const places = 2 ** Math.ceil(Math.log2(limits.rowsMax * 2))
