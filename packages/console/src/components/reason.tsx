import type { ComponentChildren } from 'preact'
import type { ReasonGiven } from '../generated/operator.ts'
import { Field, Form } from './form.tsx'
import { Drawer } from './layout.tsx'

type ReasonFormProps = {
  submit: string
  /** Whether the change cannot be undone. */
  isFinal?: boolean
  /** Says who reads the reason. */
  note?: string
  onSubmit: (given: ReasonGiven) => PromiseLike<unknown>
}

/** Asks for an optional reason for a change. Errors appear at the field. */
export function ReasonForm({
  submit,
  isFinal = false,
  note = 'For the audit log; no personal data',
  onSubmit,
}: ReasonFormProps) {
  return (
    <Form submit={submit} isFinal={isFinal} onSubmit={({ reason = '' }) => onSubmit(reason === '' ? {} : { reason })}>
      {problemOf => <Field label="Reason" name="reason" problem={problemOf('reason')} note={note} />}
    </Form>
  )
}

type ReasonDrawerProps = ReasonFormProps & {
  title: string
  isOpen: boolean
  onClose: () => void
  children: ComponentChildren
}

/** Describes a change and asks for the reason. Closes when the change is made. */
export function ReasonDrawer({ title, isOpen, onClose, children, onSubmit, ...form }: ReasonDrawerProps) {
  return (
    <Drawer title={title} isOpen={isOpen} onClose={onClose}>
      <p>{children}</p>
      <ReasonForm
        {...form}
        onSubmit={async given => {
          await onSubmit(given)
          onClose()
        }}
      />
    </Drawer>
  )
}
