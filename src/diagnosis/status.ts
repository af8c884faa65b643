import type { Reader } from '../database/database.ts'
import { attentionOf } from './attention.ts'
import { type Asked, readStatusFacts } from './status-facts.ts'

/** The health of the installation, and everything that needs attention. */
export type Status = Awaited<ReturnType<typeof readStatus>>

export async function readStatus(db: Reader, asked: Asked) {
  const facts = await readStatusFacts(db, asked)
  return { ...facts, now: asked.now, attention: attentionOf(facts, asked) }
}

/** Rails with the simulated bank for all other currencies are a rehearsal on a sandbox. */
export function bankOf({ mode, rails }: Pick<Status, 'mode' | 'rails'>): 'simulated' | 'connected' | null {
  if (rails.length > 0) return 'connected'
  return mode === 'sandbox' ? 'simulated' : null
}
