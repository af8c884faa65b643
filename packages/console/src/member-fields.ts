import type { Member, MemberUpdate, NewMember } from '@midmonth/sdk'

type Fields = Record<string, string>

/** Builds a new member from the form; leaves out empty fields. */
export function memberOf(entered: Fields): NewMember {
  const { email = '', firstName = '', lastName = '', tier = '', phone = '', workerId = '' } = entered
  return {
    ...{ email, firstName, lastName, tier },
    ...(phone === '' ? {} : { phone }),
    ...(workerId === '' ? {} : { workerId }),
    ...accountOf(entered),
  }
}

/** Returns only the fields that the reader has changed: other fields may have changed since the page was loaded. */
export function changesOf(member: Member, entered: Fields): MemberUpdate {
  const changes: MemberUpdate = accountOf(entered)
  for (const name of ['email', 'firstName', 'lastName'] as const)
    if (entered[name] !== member[name]) changes[name] = entered[name]
  for (const name of ['phone', 'workerId'] as const)
    if (entered[name] !== (member[name] ?? '')) changes[name] = entered[name] || null
  // Empty until the tiers have loaded.
  if (entered.tier && entered.tier !== member.tier) changes.tier = entered.tier
  return changes
}

function accountOf({ accountHolder = '', sortCode = '', accountNumber = '', iban = '' }: Fields) {
  if (iban !== '') return { accountDetails: { accountHolder, iban } }
  if (sortCode !== '' || accountNumber !== '') return { accountDetails: { accountHolder, sortCode, accountNumber } }
  return {}
}
