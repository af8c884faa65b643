import { lastFour } from '../bank-accounts/rules.ts'
import { consoleOperation, named } from '../http/operation.ts'
import { problem } from '../kernel/errors.ts'
import { strictObject } from '../kernel/schemas.ts'
import { payroll } from '../users/roles.ts'
import { auditOf } from './audit.ts'
import * as members from './members.ts'
import { RevealReason } from './schema.ts'

/** Reveals the bank account and the date of birth, which every other response to a user masks. */
const revealAccount = consoleOperation({
  route: 'POST /console/v1/members/:memberId/account',
  console: 'user',
  roles: payroll,
  body: strictObject({ reason: RevealReason }),
  async write(tx, { partner, params: { memberId }, body: { reason } }) {
    const { accountDetails, dob } = await members.find(tx, { partnerId: partner.id, memberId })
    if (accountDetails === null && dob === null)
      throw problem('NotFound', 'The member has neither a bank account nor a date of birth')
    const details = { reason, lastFour: accountDetails === null ? null : lastFour(accountDetails) }
    const audit = { action: 'member.reveal', details } as const
    return { body: { accountDetails, dob }, resourceId: memberId, audit }
  },
})

/** `PUT /v1/members/{id}` takes the whole profile, but users see only a masked bank account. Idempotent. */
const reinstateMember = consoleOperation({
  route: 'POST /console/v1/members/:memberId/reinstate',
  scope: 'members:write',
  roles: payroll,
  async write(tx, { partner, params: { memberId }, now }) {
    const command = { type: 'List', memberId, wanted: {} } as const
    const reinstated = await members.change(tx, { partner, command, now })
    const audit = auditOf('member.reinstate', reinstated)
    return { body: { status: reinstated.after.status }, resourceId: memberId, audit }
  },
})

/** Operations on one member for users of the console. No partner's server needs them. */
export const consoleOperations = named({ revealAccount, reinstateMember })
