import { originOf, type Reader } from '../database/database.ts'
import type { Sealer } from './sealer.ts'

const sealers = new WeakMap<object, Sealer>()

/** From now on, the database, its pool of batches and their transactions carry the sealer. */
export function holdSealer(db: Reader, sealer: Sealer): void {
  sealers.set(originOf(db), sealer)
}

/** The sealer of the database that a transaction is on. @throws Error before `holdSealer`: what is sealed cannot be read then */
export function sealerOf(db: Reader): Sealer {
  const sealer = sealers.get(originOf(db))
  if (sealer === undefined) throw new Error('The installation’s key has not been opened for this database')
  return sealer
}
