import { type Static, Type } from 'typebox'
import { Id } from '../kernel/ids.ts'
import { namedObject, nullable, strictObject } from '../kernel/schemas.ts'
import { Day, InstantOrNull } from '../kernel/time.ts'

export const EraseQuery = strictObject({
  dryRun: Type.Optional(
    Type.Boolean({ default: false, description: 'Return what would be destroyed and kept, without erasing anything.' }),
  ),
})

const Kept = namedObject('KeptAfterErasure', {
  what: Type.String(),
  rule: Type.String({ description: 'Why it is kept.' }),
  until: nullable(Day, 'Null is for ever.'),
})

export const MemberErasure = namedObject('MemberErasure', {
  memberId: Id('member'),
  erasedAt: { ...InstantOrNull, description: 'Null if the member was not erased.' },
  obstacles: Type.Array(Type.String(), {
    description:
      'Every reason why the member cannot be erased yet. Only with `dryRun`; otherwise they are refused as `Conflict`.',
  }),
  destroyed: Type.Array(Type.String()),
  kept: Type.Array(Kept),
  receipt: nullable(
    Type.String(),
    'The same, signed: a compact JSON Web Signature (RFC 7515) with the algorithm `EdDSA`. Null if the member was not erased.',
  ),
  publicKey: namedObject('ReceiptKey', {
    kty: Type.Literal('OKP'),
    crv: Type.Literal('Ed25519'),
    x: Type.String(),
    kid: Type.String({ description: 'The same in the header of each receipt that this key has signed.' }),
  }),
})
export type MemberErasure = Static<typeof MemberErasure>
