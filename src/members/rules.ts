import { type BankAccount, check, isSame, normalised } from '../bank-accounts/rules.ts'
import { issue, Problem, problem } from '../kernel/errors.ts'
import type { Currency } from '../kernel/money.ts'
import type { Day } from '../kernel/time.ts'
import { foldEmail } from './email.ts'
import { absentValues, type FieldName, fieldNames, type Profile } from './fields.ts'
import { toE164 } from './phone.ts'
import type { MemberStatus, MemberUpdate, NewMember } from './schema.ts'

export type Member = Profile & { id: string; status: MemberStatus }

/** A transition of a member. Each emits one event: `member.invited` and so on. */
export type Transition = 'invited' | 'activated' | 'removed' | 'reinstated'

export const statusAfter = {
  invited: 'invited',
  activated: 'active',
  removed: 'inactive',
  reinstated: 'invited',
} as const satisfies Record<Transition, MemberStatus>

/**
 * One command about a member. `Add` creates the member with this id. `Update` changes the given fields; an inactive member stays
 * inactive. `Replace` replaces the whole profile and reinstates an inactive member. `List` is a row of a complete list of members:
 * it changes the given fields and reinstates an inactive member.
 */
export type MemberCommand =
  | { type: 'Add'; memberId: string; wanted: NewMember }
  | { type: 'Replace'; memberId: string; wanted: NewMember }
  | { type: 'Update' | 'List'; memberId: string; wanted: MemberUpdate }
  | { type: 'Offboard' | 'Activate'; memberId: string }

/** The effect of one command on a member; `before` is undefined for a new member. */
export type Change = { before: Member | undefined; after: Member }

/** The facts that a profile is validated against. */
export type ProfileFacts = {
  /** In the partner's time zone. */
  today: Day
  /** The partner's country, for phone numbers without a country code. */
  country: string
  tierCurrencies: ReadonlyMap<string, Currency>
}

/** Everything besides the command and the member that decides a change. */
export type Facts = ProfileFacts & {
  /** Members become active as soon as they are invited or reinstated. */
  autoActivate: boolean
  /** The active or invited member with an e-mail, in lower case. */
  emailHolders: ReadonlyMap<string, string>
  /** The member of any status with a `workerId`. */
  workerIdHolders: ReadonlyMap<string, string>
  /** The currency of a member's current tier if money in it is available, owed or in transit. */
  moneyIn: ReadonlyMap<string, Currency>
}

/**
 * Decides a command about a member, who is undefined if there is no member with the command's id. A command that changes nothing
 * is accepted.
 * @returns Problem `MemberNotFound`, `MemberAlreadyInvited`, `InvalidAddMemberPayload` or `InvalidUpdateMemberPayload` with an
 * issue for each fault, or `Conflict` for activating an inactive member
 */
export function decide(command: MemberCommand, member: Member | undefined, facts: Facts): Change | Problem {
  if (command.type === 'Add') return decideInvitation(command, facts)
  if (member === undefined) return memberNotFound(command.memberId)
  switch (command.type) {
    case 'Replace':
      return decideProfile(member, withDefaults(command.wanted), facts, { reinstates: true })
    case 'List': {
      const wanted = { ...member, ...command.wanted, ...namesWithSpaces(member, command.wanted) }
      return decideProfile(member, wanted, facts, { reinstates: true })
    }
    case 'Update':
      return decideProfile(member, { ...member, ...command.wanted }, facts, { reinstates: false })
    case 'Offboard':
      return { before: member, after: { ...member, status: 'inactive' } }
    case 'Activate':
      return member.status === 'inactive'
        ? problem('Conflict', 'The member is inactive; reinstate the member with PUT /v1/members/{memberId} first')
        : { before: member, after: { ...member, status: 'active' } }
    default:
      return command satisfies never
  }
}

/** The fields of an existing member that a change changes, in their order. */
export function changedFields({ before, after }: Change): FieldName[] {
  if (before === undefined) return []
  return fieldNames.filter(field =>
    field === 'accountDetails'
      ? !isSameAccount(before.accountDetails, after.accountDetails)
      : before[field] !== after[field],
  )
}

/** The transitions of a change, in order. A member becomes active only through `invited`. */
export function transitionsOf({ before, after }: Change): Transition[] {
  if (before?.status === after.status) return []
  if (after.status === 'inactive') return ['removed']
  if (before?.status === 'invited') return ['activated']
  const first = before === undefined ? 'invited' : 'reinstated'
  return after.status === 'active' ? [first, 'activated'] : [first]
}

/** Normalises the profile of a new member and lists its faults, except clashes with other members. */
export function normaliseNew(wanted: NewMember, facts: ProfileFacts): { profile: Profile; faults: string[] } {
  return normalise(withDefaults(wanted), undefined, facts)
}

/** The same problem for an unknown member and another partner's, so that callers cannot tell them apart. */
export function memberNotFound(memberId: string): Problem {
  return problem('MemberNotFound', 'There is no such member', { memberId })
}

function decideInvitation(
  { memberId, wanted }: { memberId: string; wanted: NewMember },
  facts: Facts,
): Change | Problem {
  const { profile, faults } = normaliseNew(wanted, facts)
  const holderId = otherHolder({ ...profile, id: memberId }, ['email', 'workerId'], facts)
  if (holderId !== undefined) return alreadyInvited(holderId)
  if (faults.length > 0) return refusal('InvalidAddMemberPayload', faults, { email: wanted.email })
  return { before: undefined, after: { ...profile, id: memberId, status: statusOfInvited(facts) } }
}

function decideProfile(
  before: Member,
  wanted: Profile,
  facts: Facts,
  { reinstates }: { reinstates: boolean },
): Change | Problem {
  const { profile, faults } = normalise(wanted, before, facts)
  const isReinstated = reinstates && before.status === 'inactive'
  const after = { ...before, ...profile, status: isReinstated ? statusOfInvited(facts) : before.status }
  const changed = changedFields({ before, after })
  // An inactive member does not reserve an e-mail, so another member may have taken it.
  const holderId = otherHolder(after, isReinstated ? ['email', ...changed] : changed, facts)
  if (holderId !== undefined) return alreadyInvited(holderId)
  if (changed.includes('email') && !isReinstated && before.status !== 'invited') {
    faults.push(`The e-mail can change only while the member is invited; this one is ${before.status}`)
  }
  const [tierCurrency, moneyIn] = [facts.tierCurrencies.get(after.tier), facts.moneyIn.get(before.id)]
  if (changed.includes('tier') && tierCurrency !== undefined && moneyIn !== undefined && tierCurrency !== moneyIn) {
    faults.push(
      `The tier ${after.tier} is in ${tierCurrency}, and the member still has ${moneyIn} available, owed or on its way`,
    )
  }
  if (faults.length > 0) return refusal('InvalidUpdateMemberPayload', faults, { memberId: before.id })
  return { before, after }
}

// Like `{ ...absentValues, ...wanted }`, which is slow for the million rows of a file.
function withDefaults(wanted: NewMember): Profile {
  const profile: Record<string, unknown> = { ...absentValues }
  for (const name of fieldNames) if (wanted[name] !== undefined) profile[name] = wanted[name]
  return profile as Profile
}

// The API accepts names with surrounding spaces; cells of a file are trimmed.
function namesWithSpaces({ firstName, lastName }: Member, wanted: MemberUpdate): Partial<Profile> {
  return {
    ...(wanted.firstName === firstName.trim() ? { firstName } : {}),
    ...(wanted.lastName === lastName.trim() ? { lastName } : {}),
  }
}

function statusOfInvited({ autoActivate }: Facts): MemberStatus {
  return autoActivate ? 'active' : 'invited'
}

/** Another member that has the e-mail or the `workerId`, if these fields are claimed. */
function otherHolder(
  { id, email, workerId }: Pick<Member, 'id' | 'email' | 'workerId'>,
  claimed: FieldName[],
  { emailHolders, workerIdHolders }: Facts,
): string | undefined {
  return [
    claimed.includes('email') ? emailHolders.get(foldEmail(email)) : undefined,
    claimed.includes('workerId') && workerId !== null ? workerIdHolders.get(workerId) : undefined,
  ].find(holderId => holderId !== undefined && holderId !== id)
}

function alreadyInvited(holderId: string): Problem {
  return problem('MemberAlreadyInvited', 'Another member has this e-mail or workerId; `memberId` names that member', {
    memberId: holderId,
  })
}

/**
 * Normalises a profile to its stored form and lists its faults. Unchanged values are not checked again: newer tables of bank or
 * phone numbers must not block an unrelated change.
 */
function normalise(
  wanted: Profile,
  current: Profile | undefined,
  facts: ProfileFacts,
): { profile: Profile; faults: string[] } {
  const { country, today, tierCurrencies } = facts
  const faults: string[] = []
  const profile = { ...wanted }
  if (current !== undefined && isSameEmail(wanted.email, current.email)) profile.email = current.email
  if (wanted.phone !== null && wanted.phone !== current?.phone) {
    const phone = toE164(wanted.phone, country)
    if (phone === undefined)
      faults.push(`The phone number is not possible in ${country}; include the country code, like +447700900123`)
    else profile.phone = phone
  }
  if (wanted.accountDetails !== null) {
    const account = normalised(wanted.accountDetails)
    profile.accountDetails = account
    if (!isSameAccount(account, current?.accountDetails ?? null) && check(account) === 'invalid') {
      faults.push('The bank account fails its check; look for a mistyped digit')
    }
  }
  if (wanted.dob !== null && wanted.dob !== current?.dob && (wanted.dob > today || wanted.dob < earliestDob)) {
    faults.push(`The dob must be a day from ${earliestDob} to today`)
  }
  if (!tierCurrencies.has(wanted.tier)) {
    faults.push(`There is no such tier; the tiers are: ${[...tierCurrencies.keys()].join(', ') || 'none yet'}`)
  }
  return { profile, faults }
}

// No living employee was born earlier, and PostgreSQL has no year 0.
const earliestDob = '1900-01-01'

/** The fields that a partner sets, in their order. */
export function profileOf(member: Member): Profile {
  return Object.fromEntries(fieldNames.map(name => [name, member[name]])) as Profile
}

function isSameAccount(a: BankAccount | null, b: BankAccount | null): boolean {
  return a === null || b === null ? a === b : isSame(a, b)
}

function isSameEmail(a: string, b: string): boolean {
  return foldEmail(a) === foldEmail(b)
}

function refusal(
  name: 'InvalidAddMemberPayload' | 'InvalidUpdateMemberPayload',
  faults: string[],
  extra: Record<string, string>,
): Problem {
  return new Problem(
    name,
    faults.map(fault => issue(name, fault, extra)),
  )
}
