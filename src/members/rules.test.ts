import { describe, expect, test } from 'vitest'
import { Problem } from '../kernel/errors.ts'
import {
  decideActivation,
  decideInvitation,
  decideOffboarding,
  decideReplacement,
  decideUpdate,
  type Facts,
  type Member,
} from './rules.ts'

const facts: Facts = {
  today: '2026-03-10',
  country: 'GB',
  autoActivate: false,
  tierNames: ['Bronze', 'Silver'],
  tierCurrency: 'GBP',
  moneyIn: null,
  holders: { emailHolderId: null, workerIdHolderId: null },
}
const body = { email: 'sam@example.com', firstName: 'Sam', lastName: 'Okafor', tier: 'Bronze' }
const account = { accountHolder: 'Sam Okafor', sortCode: '089999', accountNumber: '66374958' }
const member: Member = {
  ...{ ...body, id: 'mem_1', status: 'active', phone: '+447700900123', workerId: 'E-1', accountDetails: account },
  ...{ enablePayroll: true, dob: '1990-06-24', gender: 'Female' },
}
const invited: Member = { ...member, status: 'invited' }
const inactive: Member = { ...member, status: 'inactive' }

describe('an invitation', () => {
  test('sets omitted fields to null, and enables payroll', () => {
    expect(accepted(decideInvitation(body, facts))).toEqual({
      profile: {
        ...body,
        ...{ phone: null, workerId: null, accountDetails: null, enablePayroll: true, dob: null, gender: null },
      },
      steps: ['invited'],
    })
  })

  test('passes through invited on the way to active, so that both emit an event', () => {
    expect(accepted(decideInvitation(body, { ...facts, autoActivate: true })).steps).toEqual(['invited', 'activated'])
  })

  test('reports all its faults at once', () => {
    const refused = decideInvitation(
      { ...body, phone: '12', dob: '2030-01-01', accountDetails: { ...account, accountNumber: '66374959' } },
      { ...facts, tierCurrency: undefined },
    )
    expect(codesOf(refused)).toEqual(Array(4).fill('InvalidAddMemberPayload'))
    expect((refused as Problem).message).toContain('Bronze, Silver')
  })

  test('of an existing member is reported before other faults', () => {
    const taken = { emailHolderId: 'mem_2', workerIdHolderId: 'mem_3' }
    const refused = decideInvitation(body, { ...facts, tierCurrency: undefined, holders: taken })
    expect(refused).toMatchObject({ issues: [{ code: 'MemberAlreadyInvited', memberId: 'mem_2' }] })
  })
})

describe('a phone number', () => {
  const phoneOf = (phone: string, country = 'GB') => {
    const decided = decideInvitation({ ...body, phone }, { ...facts, country })
    return decided instanceof Problem ? 'refused' : decided.profile.phone
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
    expect(accepted(decideUpdate(member, {}, facts))).toMatchObject({ changed: [], steps: [] })
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
    const { changed, profile } = accepted(decideUpdate(member, { ...removed, lastName: 'Okafor' }, facts))
    expect(changed.toSorted()).toEqual(['accountDetails', 'dob', 'gender', 'phone', 'workerId'])
    expect(profile).toMatchObject(removed)
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
      steps: [],
    })
  })

  test('to another member’s workerId names that member', () => {
    const taken = { ...facts, holders: { emailHolderId: null, workerIdHolderId: 'mem_2' } }
    expect(decideUpdate(member, { workerId: 'E-2' }, taken)).toMatchObject({
      issues: [{ code: 'MemberAlreadyInvited', memberId: 'mem_2' }],
    })
  })

  test('of an inactive member is allowed even if another member has taken the e-mail', () => {
    const taken = { ...facts, holders: { emailHolderId: 'mem_2', workerIdHolderId: null } }
    expect(accepted(decideUpdate(inactive, { lastName: 'Ade' }, taken)).changed).toEqual(['lastName'])
  })

  test('does not check unchanged values again', () => {
    const old: Member = { ...member, phone: '+440', accountDetails: { ...account, accountNumber: '66374959' } }
    const { changed } = accepted(decideUpdate(old, { phone: '+440', lastName: 'Ade' }, facts))
    expect(changed).toEqual(['lastName'])
  })

  test('to a tier of another currency waits until the member has no money in the old one', () => {
    const inEuros = { ...facts, tierCurrency: 'EUR' } as const
    expect(accepted(decideUpdate(member, { tier: 'Silver' }, inEuros)).changed).toEqual(['tier'])
    expect(codesOf(decideUpdate(member, { tier: 'Silver' }, { ...inEuros, moneyIn: 'GBP' }))).toEqual([
      'InvalidUpdateMemberPayload',
    ])
    expect(accepted(decideUpdate(member, { tier: 'Silver' }, { ...facts, moneyIn: 'GBP' })).changed).toEqual(['tier'])
  })
})

describe('a replacement', () => {
  test('removes omitted fields', () => {
    const { profile, steps } = accepted(decideReplacement({ ...member, enablePayroll: false }, body, facts))
    expect(steps).toEqual([])
    expect(profile).toMatchObject({ phone: null, workerId: null, accountDetails: null, enablePayroll: true, dob: null })
  })

  test('reinstates an inactive member, through invited', () => {
    expect(accepted(decideReplacement(inactive, body, facts)).steps).toEqual(['reinstated'])
    const atOnce = { ...facts, autoActivate: true }
    expect(accepted(decideReplacement(inactive, body, atOnce)).steps).toEqual(['reinstated', 'activated'])
  })

  test('changes the e-mail unless the member is active', () => {
    const other = { ...body, email: 'other@example.com' }
    expect(accepted(decideReplacement(invited, other, facts)).changed).toContain('email')
    expect(accepted(decideReplacement(inactive, other, facts)).changed).toContain('email')
    expect(codesOf(decideReplacement(member, other, facts))).toEqual(['InvalidUpdateMemberPayload'])
  })

  test('cannot reinstate a member whose e-mail another member has taken', () => {
    const taken = { ...facts, holders: { emailHolderId: 'mem_2', workerIdHolderId: null } }
    expect(codesOf(decideReplacement(inactive, body, taken))).toEqual(['MemberAlreadyInvited'])
  })
})

test('offboarding makes a member inactive and is idempotent', () => {
  expect(decideOffboarding(invited).steps).toEqual(['removed'])
  expect(decideOffboarding(member).steps).toEqual(['removed'])
  expect(decideOffboarding(inactive).steps).toEqual([])
})

test('activation applies to invited members, is a no-op for active ones and refused for inactive ones', () => {
  expect(accepted(decideActivation(invited)).steps).toEqual(['activated'])
  expect(accepted(decideActivation(member)).steps).toEqual([])
  expect(codesOf(decideActivation(inactive))).toEqual(['Conflict'])
})

function accepted<T>(decided: T | Problem): T {
  if (decided instanceof Problem) throw decided
  return decided
}

function codesOf(decided: unknown): string[] {
  return decided instanceof Problem ? decided.issues.map(issue => issue.code) : []
}
