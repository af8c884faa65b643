import { describe, expect, test } from 'vitest'
import { Problem } from '../kernel/errors.ts'
import { type Change, changedFields, decide, type Facts, type Member, transitionsOf } from './rules.ts'
import type { MemberUpdate, NewMember } from './schema.ts'

const facts: Facts = {
  today: '2026-03-10',
  country: 'GB',
  autoActivate: false,
  tierCurrencies: new Map([
    ['Bronze', 'GBP'],
    ['Silver', 'GBP'],
  ]),
  emailHolders: new Map(),
  workerIdHolders: new Map(),
  moneyIn: new Map(),
}
const body = { email: 'sam@example.com', firstName: 'Sam', lastName: 'Okafor', tier: 'Bronze' }
const account = { accountHolder: 'Sam Okafor', sortCode: '089999', accountNumber: '66374958' }
const member: Member = {
  ...{ ...body, id: 'mem_1', status: 'active', phone: '+447700900123', workerId: 'E-1', accountDetails: account },
  ...{ enablePayroll: true, dob: '1990-06-24', gender: 'Female' },
}
const emailTaken: Facts = { ...facts, emailHolders: new Map([['sam@example.com', 'mem_2']]) }
const invited: Member = { ...member, status: 'invited' }
const inactive: Member = { ...member, status: 'inactive' }

describe('an invitation', () => {
  test('sets omitted fields to null, and enables payroll', () => {
    expect(accepted(decideInvitation(body, facts))).toMatchObject({
      after: {
        ...{ ...body, id: 'mem_1', status: 'invited' },
        ...{ phone: null, workerId: null, accountDetails: null, enablePayroll: true, dob: null, gender: null },
      },
      transitions: ['invited'],
    })
  })

  test('passes through invited on the way to active, so that both emit an event', () => {
    const { transitions } = accepted(decideInvitation(body, { ...facts, autoActivate: true }))
    expect(transitions).toEqual(['invited', 'activated'])
  })

  test('reports all its faults at once', () => {
    const refused = decideInvitation(
      {
        ...{ ...body, tier: 'Gold', phone: '12', dob: '2030-01-01' },
        accountDetails: { ...account, accountNumber: '66374959' },
      },
      facts,
    )
    expect(codesOf(refused)).toEqual(Array(4).fill('InvalidAddMemberPayload'))
    expect((refused as Problem).message).toContain('Bronze, Silver')
  })

  test('of an existing member is reported before other faults', () => {
    const taken = { ...emailTaken, workerIdHolders: new Map([['E-1', 'mem_3']]) }
    const refused = decideInvitation({ ...body, tier: 'Gold', workerId: 'E-1' }, taken)
    expect(refused).toMatchObject({ issues: [{ code: 'MemberAlreadyInvited', memberId: 'mem_2' }] })
  })
})

describe('a phone number', () => {
  const phoneOf = (phone: string, country = 'GB') => {
    const decided = decideInvitation({ ...body, phone }, { ...facts, country })
    return decided instanceof Problem ? 'refused' : decided.after.phone
  }

  test.each([
    ['07700 900123', 'GB', '+447700900123'],
    ['+44 (0)7700 900123', 'GB', '+447700900123'],
    ['0044 7700 900123', 'GB', '+447700900123'],
    ['0151 23456789', 'DE', '+4915123456789'],
    ['+4915123456789', 'GB', '+4915123456789'],
  ])('%s of %s is stored as %s', (phone, country, stored) => {
    expect(phoneOf(phone, country)).toBe(stored)
  })

  test.each(['12', 'call 07700 900123', '07700 900123 ext 5', '+999 7700 900123', '1-800-FLOWERS', '+'])(
    '%s is refused',
    phone => {
      expect(phoneOf(phone)).toBe('refused')
    },
  )
})

describe('a date of birth', () => {
  const isRefused = (dob: string) => decideInvitation({ ...body, dob }, facts) instanceof Problem

  test('may be any day from 1900 to today', () => {
    expect(isRefused('2026-03-10')).toBe(false)
    expect(isRefused('1900-01-01')).toBe(false)
  })

  test('may be neither in the future nor before 1900', () => {
    expect(isRefused('2026-03-11')).toBe(true)
    expect(isRefused('1899-12-31')).toBe(true)
    expect(isRefused('0000-01-01')).toBe(true)
  })
})

describe('an update', () => {
  test('without fields changes nothing', () => {
    expect(accepted(decideUpdate(member, {}, facts))).toMatchObject({ changed: [], transitions: [] })
  })

  test('with equal values changes nothing, however they are written', () => {
    const same = {
      ...{ email: 'SAM@example.com', phone: '07700 900123', workerId: 'E-1', dob: '1990-06-24' },
      accountDetails: { ...account, sortCode: '08-99-99' },
    }
    expect(accepted(decideUpdate(member, same, facts)).changed).toEqual([])
  })

  test('names exactly the fields that change, and null removes', () => {
    const removed = { phone: null, workerId: null, accountDetails: null, dob: null, gender: null }
    const { changed, after } = accepted(decideUpdate(member, { ...removed, lastName: 'Okafor' }, facts))
    expect(changed.toSorted()).toEqual(['accountDetails', 'dob', 'gender', 'phone', 'workerId'])
    expect(after).toMatchObject(removed)
  })

  test('changes the e-mail only while the member is invited', () => {
    const update = { email: 'other@example.com' }
    expect(accepted(decideUpdate(invited, update, facts)).changed).toEqual(['email'])
    expect(codesOf(decideUpdate(member, update, facts))).toEqual(['InvalidUpdateMemberPayload'])
    expect(codesOf(decideUpdate(inactive, update, facts))).toEqual(['InvalidUpdateMemberPayload'])
  })

  test('does not reinstate an inactive member', () => {
    expect(accepted(decideUpdate(inactive, { lastName: 'Ade' }, facts))).toMatchObject({
      changed: ['lastName'],
      transitions: [],
    })
  })

  test('to another member’s workerId names that member', () => {
    const taken = { ...facts, workerIdHolders: new Map([['E-2', 'mem_2']]) }
    expect(decideUpdate(member, { workerId: 'E-2' }, taken)).toMatchObject({
      issues: [{ code: 'MemberAlreadyInvited', memberId: 'mem_2' }],
    })
  })

  test('of an inactive member is allowed even if another member has taken the e-mail', () => {
    expect(accepted(decideUpdate(inactive, { lastName: 'Ade' }, emailTaken)).changed).toEqual(['lastName'])
  })

  test('does not check unchanged values again', () => {
    const old: Member = { ...member, phone: '+440', accountDetails: { ...account, accountNumber: '66374959' } }
    const { changed } = accepted(decideUpdate(old, { phone: '+440', lastName: 'Ade' }, facts))
    expect(changed).toEqual(['lastName'])
  })

  test('to a tier of another currency waits until the member has no money in the old one', () => {
    const inEuros: Facts = { ...facts, tierCurrencies: new Map([...facts.tierCurrencies, ['Silver', 'EUR']]) }
    const moneyIn: Facts['moneyIn'] = new Map([['mem_1', 'GBP']])
    const toSilver = (given: Facts) => decideUpdate(member, { tier: 'Silver' }, given)
    expect(accepted(toSilver(inEuros)).changed).toEqual(['tier'])
    expect(codesOf(toSilver({ ...inEuros, moneyIn }))).toEqual(['InvalidUpdateMemberPayload'])
    expect(accepted(toSilver({ ...facts, moneyIn })).changed).toEqual(['tier'])
  })
})

describe('a replacement', () => {
  test('removes omitted fields', () => {
    const { after, transitions } = accepted(decideReplacement({ ...member, enablePayroll: false }, body, facts))
    expect(transitions).toEqual([])
    expect(after).toMatchObject({ phone: null, workerId: null, accountDetails: null, enablePayroll: true, dob: null })
  })

  test('reinstates an inactive member, through invited', () => {
    expect(accepted(decideReplacement(inactive, body, facts)).transitions).toEqual(['reinstated'])
    const atOnce = { ...facts, autoActivate: true }
    expect(accepted(decideReplacement(inactive, body, atOnce)).transitions).toEqual(['reinstated', 'activated'])
  })

  test('changes the e-mail unless the member is active', () => {
    const other = { ...body, email: 'other@example.com' }
    expect(accepted(decideReplacement(invited, other, facts)).changed).toContain('email')
    expect(accepted(decideReplacement(inactive, other, facts)).changed).toContain('email')
    expect(codesOf(decideReplacement(member, other, facts))).toEqual(['InvalidUpdateMemberPayload'])
  })

  test('cannot reinstate a member whose e-mail another member has taken', () => {
    expect(codesOf(decideReplacement(inactive, body, emailTaken))).toEqual(['MemberAlreadyInvited'])
  })
})

test('offboarding makes a member inactive and is idempotent', () => {
  const offboarded = (before: Member) => accepted(decide({ type: 'Offboard', memberId: before.id }, before, facts))
  expect(offboarded(invited).transitions).toEqual(['removed'])
  expect(offboarded(member).transitions).toEqual(['removed'])
  expect(offboarded(inactive).transitions).toEqual([])
})

test('activation applies to invited members, is a no-op for active ones and refused for inactive ones', () => {
  const decideActivation = (before: Member) => decide({ type: 'Activate', memberId: before.id }, before, facts)
  expect(accepted(decideActivation(invited)).transitions).toEqual(['activated'])
  expect(accepted(decideActivation(member)).transitions).toEqual([])
  expect(codesOf(decideActivation(inactive))).toEqual(['Conflict'])
})

function decideInvitation(wanted: NewMember, given: Facts) {
  return decide({ type: 'Add', memberId: 'mem_1', wanted }, undefined, given)
}

function decideUpdate(before: Member, wanted: MemberUpdate, given: Facts) {
  return decide({ type: 'Update', memberId: before.id, wanted }, before, given)
}

function decideReplacement(before: Member, wanted: NewMember, given: Facts) {
  return decide({ type: 'Replace', memberId: before.id, wanted }, before, given)
}

function accepted(decided: Change | Problem) {
  if (decided instanceof Problem) throw decided
  return { after: decided.after, changed: changedFields(decided), transitions: transitionsOf(decided) }
}

function codesOf(decided: unknown): string[] {
  return decided instanceof Problem ? decided.issues.map(issue => issue.code) : []
}
