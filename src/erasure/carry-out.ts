import type { Db, Reader, Tx } from '../database/database.ts'
import { sealerOf } from '../sealing/held.ts'
import { claimsOf, erase, type Preview, preview, requireSettings, withJournal } from './erasure.ts'
import type { ErasureSettings } from './journal.ts'
import { publicKeyOf } from './receipts.ts'
import type { MemberErasure } from './schema.ts'

type Response = { body: MemberErasure; resourceId?: string; audit?: Awaited<ReturnType<typeof erase>>['audit'] }

/** How the operation reads or writes, which also responds. */
type Steps<Done> = {
  read(work: (reader: Reader) => Promise<Response>): Promise<Done>
  write(work: (tx: Tx) => Promise<Response>): Promise<Done>
}

/** Previews or carries out an erasure, for the partner or an operator. */
export async function carryOut<Done>(
  { db, erasures }: { db: Db; erasures?: ErasureSettings | undefined },
  { dryRun, now, ...member }: { partnerId: string; memberId: string; dryRun?: boolean | undefined; now: Date },
  { read, write }: Steps<Done>,
): Promise<Done> {
  const settings = requireSettings({ erasures })
  const { memberId } = member
  const of = { ...member, settings, now }
  if (dryRun) return await read(async reader => ({ body: bodyOf(reader, memberId, await preview(reader, of)) }))
  return await withJournal(db, settings, recordOutside =>
    write(async tx => {
      const { receipt, audit } = await erase(tx, { ...of, recordOutside })
      return { body: bodyOf(tx, memberId, { receipt }), resourceId: memberId, audit }
    }),
  )
}

function bodyOf(db: Reader, memberId: string, outcome: Preview | { receipt: string }): MemberErasure {
  const publicKey = publicKeyOf(sealerOf(db))
  if (!('receipt' in outcome))
    return { memberId, erasedAt: null, ...outcome, destroyed: [...outcome.destroyed], receipt: null, publicKey }
  const { erasedAt, destroyed, kept } = claimsOf(outcome.receipt)
  return { memberId, erasedAt, obstacles: [], destroyed: [...destroyed], kept, receipt: outcome.receipt, publicKey }
}
