import { type BankAccount, check, isSame, normalised } from '../bank-accounts/rules.ts'
import { issue, Problem, problem } from '../kernel/errors.ts'
import type { Currency } from '../kernel/money.ts'
import type { Day } from '../kernel/time.ts'
import { absentValues, type FieldName, fieldNames, type Profile } from './fields.ts'
import { toE164 } from './phone.ts'
import type { MemberStatus, MemberUpdate, NewMember } from './schema.ts'

export type Member = Profile & { id: string; status: MemberStatus }

/** A transition of a member. Each emits one event: `member.invited` and so on. */
export type Step = 'invited' | 'activated' | 'removed' | 'reinstated'

export const statusAfter = {
  invited: 'invited',
  activated: 'active',
  removed: 'inactive',
  reinstated: 'invited',
} as const satisfies Record<Step, MemberStatus>

/** The effect of a change: the new profile, its changed fields, and the transitions to make, in order. */
export type ChangeOutcome = { profile: Profile; changed: FieldName[]; steps: Step[] }

/** Everything besides the request and the member that decides a change. */
export type Facts = {
  /** In the partner's time zone. */
  today: Day
  /** The partner's country, for phone numbers without a country code. */
  country: string
  /** Members become active as soon as they are invited or reinstated. */
  autoActivate: boolean
  tierNames: string[]
  /** Currency of the requested tier; undefined if there is no such tier. */
  tierCurrency: Currency | undefined
  /** Currency of the member's current tier if money in it is available, owed or in transit; otherwise null. */
  moneyIn: Currency | null
  /** Other members: the active or invited one with the requested e-mail, and the one of any status with the `workerId`. */
  holders: Holders
}

/** The facts that a profile is validated against. */
export type ProfileFacts = Pick<Facts, 'today' | 'country' | 'tierNames' | 'tierCurrency'>

type Holders = { emailHolderId: string | null; workerIdHolderId: string | null }

/** @returns Problem `MemberAlreadyInvited`, or `InvalidAddMemberPayload` with an issue for each fault */
export function decideInvitation(body: NewMember, facts: Facts): { profile: Profile; steps: Step[] } | Problem {
  const { profile, faults } = normaliseNew(body, facts)
  const holderId = facts.holders.emailHolderId ?? facts.holders.workerIdHolderId
  if (holderId !== null) return alreadyInvited(holderId)
  if (faults.length > 0) return refusal('InvalidAddMemberPayload', faults, { email: body.email })
  return { profile, steps: facts.autoActivate ? ['invited', 'activated'] : ['invited'] }
}

/** Normalises the profile of a new member and lists its faults, except clashes with other members. */
export function normaliseNew(body: NewMember, facts: ProfileFacts): { profile: Profile; faults: string[] } {
  return normalise(withDefaults(body), undefined, facts)
}

// Like `{ ...absentValues, ...body }`, which is slow for the million rows of a file.
function withDefaults(body: NewMember): Profile {
  const profile: Record<string, unknown> = { ...absentValues }
  for (const name of fieldNames) if (body[name] !== undefined) profile[name] = body[name]
  return profile as Profile
}

/**
 * Changes the given fields. An inactive member stays inactive.
 * @returns Problem `MemberAlreadyInvited`, or `InvalidUpdateMemberPayload` with an issue for each fault
 */
export function decideUpdate(member: Member, update: MemberUpdate, facts: Facts): ChangeOutcome | Problem {
  return decideChange(member, { ...profileOf(member), ...update }, facts, {
    emailMayChange: member.status === 'invited',
    steps: [],
  })
}

/**
 * Replaces the member's profile, and reinstates an inactive member.
 * @returns as `decideUpdate`
 */
export function decideReplacement(member: Member, body: NewMember, facts: Facts): ChangeOutcome | Problem {
  return decideChange(member, withDefaults(body), facts, {
    emailMayChange: member.status !== 'active',
    steps: stepsToReinstate(member, facts),
  })
}

/**
 * Applies a row of a complete list of members: the given fields change, and an inactive member is reinstated.
 * @returns as `decideUpdate`
 */
export function decideListed(member: Member, given: MemberUpdate, facts: Facts): ChangeOutcome | Problem {
  return decideChange(member, { ...profileOf(member), ...given, ...namesWithSpaces(member, given) }, facts, {
    emailMayChange: member.status !== 'active',
    steps: stepsToReinstate(member, facts),
  })
}

// The API accepts names with surrounding spaces; cells of a file are trimmed.
function namesWithSpaces(member: Member, given: MemberUpdate): Partial<Profile> {
  const { firstName, lastName } = member
  return {
    ...(given.firstName === firstName.trim() ? { firstName } : {}),
    ...(given.lastName === lastName.trim() ? { lastName } : {}),
  }
}

/** Offboarding an inactive member changes nothing. */
export function decideOffboarding(member: Member): ChangeOutcome {
  return { profile: profileOf(member), changed: [], steps: member.status === 'inactive' ? [] : ['removed'] }
}

/** Activating an active member changes nothing. @returns Problem `Conflict` for an inactive one */
export function decideActivation(member: Member): ChangeOutcome | Problem {
  const outcome = (steps: Step[]) => ({ profile: profileOf(member), changed: [], steps })
  switch (member.status) {
    case 'invited':
      return outcome(['activated'])
    case 'active':
      return outcome([])
    case 'inactive':
      return problem('Conflict', 'The member is inactive; reinstate the member with PUT /v1/members/{memberId} first')
    default:
      return member.status satisfies never
  }
}

/** The same problem for an unknown member and another partner's, so that callers cannot tell them apart. */
export function memberNotFound(memberId: string): Problem {
  return problem('MemberNotFound', 'There is no such member', { memberId })
}

function alreadyInvited(holderId: string): Problem {
  return problem('MemberAlreadyInvited', 'Another member has this e-mail or workerId; `memberId` names that member', {
    memberId: holderId,
  })
}

function stepsToReinstate({ status }: Member, { autoActivate }: Facts): Step[] {
  if (status !== 'inactive') return []
  return autoActivate ? ['reinstated', 'activated'] : ['reinstated']
}

function decideChange(
  member: Member,
  wanted: Profile,
  facts: Facts,
  { emailMayChange, steps }: { emailMayChange: boolean; steps: Step[] },
): ChangeOutcome | Problem {
  const { profile, faults } = normalise(wanted, member, facts)
  const changed = changedFields(member, profile)
  const { emailHolderId, workerIdHolderId } = facts.holders
  // An inactive member does not reserve an e-mail, so another member may have taken it.
  const claimsEmail = changed.includes('email') || steps.length > 0
  const holderId = (claimsEmail ? emailHolderId : null) ?? (changed.includes('workerId') ? workerIdHolderId : null)
  if (holderId !== null) return alreadyInvited(holderId)
  if (changed.includes('email') && !emailMayChange) {
    faults.push(`The e-mail can change only while the member is invited; this one is ${member.status}`)
  }
  const { tierCurrency, moneyIn } = facts
  if (tierCurrency !== undefined && moneyIn !== null && tierCurrency !== moneyIn) {
    faults.push(
      `The tier ${profile.tier} is in ${tierCurrency}, and the member still has ${moneyIn} available, owed or on its way`,
    )
  }
  if (faults.length > 0) return refusal('InvalidUpdateMemberPayload', faults, { memberId: member.id })
  return { profile, changed, steps }
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
  const { country, today, tierNames, tierCurrency } = facts
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
  if (tierCurrency === undefined)
    faults.push(`There is no such tier; the tiers are: ${tierNames.join(', ') || 'none yet'}`)
  return { profile, faults }
}

// No living employee was born earlier, and PostgreSQL has no year 0.
const earliestDob = '1900-01-01'

function changedFields(member: Member, profile: Profile): FieldName[] {
  return fieldNames.filter(field =>
    field === 'accountDetails'
      ? !isSameAccount(member.accountDetails, profile.accountDetails)
      : member[field] !== profile[field],
  )
}

/** The fields that a partner sets, in their order. */
export function profileOf(member: Member): Profile {
  return Object.fromEntries(fieldNames.map(name => [name, member[name]])) as Profile
}

function isSameAccount(a: BankAccount | null, b: BankAccount | null): boolean {
  return a === null || b === null ? a === b : isSame(a, b)
}

function isSameEmail(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase()
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
