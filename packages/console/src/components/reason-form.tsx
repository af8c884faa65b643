import type { ReasonGiven } from '../generated/admin.ts'
import { Field, Form } from './form.tsx'

/** Asks for the reason of a change, which may be left out. */
export function ReasonForm({
  submit,
  onSubmit,
}: {
  submit: string
  onSubmit: (given: ReasonGiven) => PromiseLike<unknown>
}) {
  return (
    <Form submit={submit} onSubmit={({ reason = '' }) => onSubmit(reason === '' ? {} : { reason })}>
      {problemOf => (
        <Field label="Reason" name="reason" problem={problemOf('reason')} note="For the audit log; nothing personal" />
      )}
    </Form>
  )
}
