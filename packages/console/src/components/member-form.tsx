import type { Member } from '@midmonth/sdk'
import { api } from '../api.ts'
import { useLoaded } from '../query.ts'
import { Choice, Field, Form } from './form.tsx'

type MemberFormProps = { member?: Member; submit: string; onSubmit: (entered: Record<string, string>) => Promise<void> }

/** The fields of a member. The account of an existing member is left empty, since only a masked account is known. */
export function MemberForm({ member, submit, onSubmit }: MemberFormProps) {
  const tiers = useLoaded('tiers', () => api.tiers.list()).value ?? []
  return (
    <Form submit={submit} onSubmit={onSubmit}>
      <div class="form-row">
        <Field label="First name" name="firstName" value={member?.firstName} isRequired />
        <Field label="Last name" name="lastName" value={member?.lastName} isRequired />
      </div>
      <Field
        label="E-mail address"
        name="email"
        type="email"
        value={member?.email}
        note={
          member === undefined || member.status === 'invited'
            ? undefined
            : 'Can be changed only while the member is invited'
        }
        isRequired
      />
      <div class="form-row">
        <Field label="Worker id" name="workerId" value={member?.workerId} />
        <Field label="Phone" name="phone" type="tel" value={member?.phone} />
      </div>
      <Choice label="Tier" name="tier" value={member?.tier} choices={tiers.map(({ name }) => name)} />
      <Field
        label="Account holder"
        name="accountHolder"
        note={member === undefined ? undefined : 'Leave the account fields empty to keep the current account'}
      />
      <div class="form-row">
        <Field label="Sort code" name="sortCode" problemsOf={['accountDetails']} />
        <Field label="Account number" name="accountNumber" />
      </div>
      <Field label="Or IBAN" name="iban" />
    </Form>
  )
}
