import { named, operationWith } from '../http/operation.ts'
import { payroll } from '../users/roles.ts'
import { carryOut } from './carry-out.ts'
import { EraseQuery, MemberErasure } from './schema.ts'

const operation = operationWith({ tag: 'Members' })

const eraseMember = operation({
  route: 'POST /v1/members/:memberId/erase',
  scope: 'members:write',
  roles: payroll,
  sdk: 'members.erase',
  summary: 'Erase a member',
  description:
    'Destroys everything that identifies an offboarded member, for ever. The books stay, without saying who the member was; which accounts were paid stays known to the operator for as long as the law demands. Afterwards only the books have the member’s id: withdrawals, statements, deductions and settlements. Everything else responds with `MemberNotFound`, and the e-mail and `workerId` can be used again. Refused as `Conflict` with every reason while the member is not offboarded or anything about them is unfinished; see docs/operations/erasure.md. Idempotent: a repeated call returns the same receipt.',
  query: EraseQuery,
  success: { description: 'What was destroyed and what is kept, with a signed receipt.', schema: MemberErasure },
  run: async ({ context, partner, params, query, now }, steps) =>
    await carryOut(context, { partnerId: partner.id, ...params, ...query, now }, steps),
})

export const erasureOperations = named({ eraseMember })
