import type { Member, NewMember } from '@openwage/sdk'
import { api } from '../api.ts'
import { useLoaded } from '../query.ts'
import { Choice, Field, Form } from './form.tsx'

/** The fields of a member. The account is left out: it is entered on the member's page, where a change is confirmed. */
export function MemberForm({
  member,
  submit,
  onSubmit,
}: {
  member?: Member
  submit: string
  onSubmit: (body: NewMember) => Promise<void>
}) {
  const tiers = useLoaded('tiers', () => api.tiers.list()).value ?? []
  return (
    <Form
      submit={submit}
      onSubmit={async ({
        email = '',
        firstName = '',
        lastName = '',
        tier = '',
        phone = '',
        workerId = '',
        ...rest
      }) => {
        const { accountHolder = '', sortCode = '', accountNumber = '', iban = '' } = rest
        const details =
          iban !== ''
            ? { accountDetails: { accountHolder, iban } }
            : sortCode !== '' || accountNumber !== ''
              ? { accountDetails: { accountHolder, sortCode, accountNumber } }
              : {}
        await onSubmit({
          ...{ email, firstName, lastName, tier },
          ...(phone === '' ? {} : { phone }),
          ...(workerId === '' ? {} : { workerId }),
          ...details,
        })
      }}
    >
      {problemOf => (
        <>
          <div class="form-row">
            <Field
              label="First name"
              name="firstName"
              value={member?.firstName}
              problem={problemOf('firstName')}
              isRequired
            />
            <Field
              label="Last name"
              name="lastName"
              value={member?.lastName}
              problem={problemOf('lastName')}
              isRequired
            />
          </div>
          <Field
            label="E-mail address"
            name="email"
            type="email"
            value={member?.email}
            problem={problemOf('email')}
            note={
              member === undefined || member.status === 'invited' ? undefined : 'Only an invited member’s can change'
            }
            isRequired
          />
          <div class="form-row">
            <Field label="Worker id" name="workerId" value={member?.workerId} problem={problemOf('workerId')} />
            <Field label="Phone" name="phone" type="tel" value={member?.phone} problem={problemOf('phone')} />
          </div>
          <Choice label="Tier" name="tier" value={member?.tier} choices={tiers.map(({ name }) => name)} />
          <Field
            label="Account holder"
            name="accountHolder"
            problem={problemOf('accountHolder')}
            note={member === undefined ? undefined : 'Leave the account empty to keep it'}
          />
          <div class="form-row">
            <Field label="Sort code" name="sortCode" problem={problemOf('sortCode') ?? problemOf('accountDetails')} />
            <Field label="Account number" name="accountNumber" problem={problemOf('accountNumber')} />
          </div>
          <Field label="Or IBAN" name="iban" problem={problemOf('iban')} />
        </>
      )}
    </Form>
  )
}
