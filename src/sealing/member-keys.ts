import { DataKey, newKey } from './data-key.ts'
import type { Sealer } from './sealer.ts'

/** The member that a key and its sealed values belong to. */
export type Owner = { partnerId: string; memberId: string }

/** What is sealed with a key of a member. */
type MemberValue = 'account' | 'profile' | 'bank-text'

/** A key of one member. The context of what it seals names the partner and the member, but not the row, so that it can be copied. */
export type MemberKey = DataKey<MemberValue>

/** What a key of a member seals: the profile, or whom payments were made to, which the law keeps for longer. */
export type KeyUse = 'profile' | 'payment'

/** Creates a key of a member. @returns the key, and its wrapped form to store */
export function createMemberKey(sealer: Sealer, use: KeyUse, owner: Owner): { key: MemberKey; wrapped: Buffer } {
  const key = newKey()
  return { key: new DataKey(key, nameOf(owner)), wrapped: sealer.seal(key, wrapping(use, owner)) }
}

/** @throws Error if the stored key was changed, or has another use or member */
export function openMemberKey(sealer: Sealer, use: KeyUse, wrapped: Buffer, owner: Owner): MemberKey {
  return new DataKey(sealer.open(wrapped, wrapping(use, owner)), nameOf(owner))
}

const wrapping = (use: KeyUse, owner: Owner) => ({ kind: `${use}-key` as const, owner: nameOf(owner) })

function nameOf({ partnerId, memberId }: Owner): string {
  return `${partnerId} ${memberId}`
}
