import type { ComponentChildren } from 'preact'
import type { ReasonGiven } from '../generated/operator.ts'
import { Field, Form } from './form.tsx'
import { Drawer } from './layout.tsx'

type ReasonFormProps = {
  submit: string
  /** Whether what is done cannot be undone. */
  isFinal?: boolean
  /** Who reads the reason. */
  note?: string
  onSubmit: (given: ReasonGiven) => PromiseLike<unknown>
}

/** Asks for the reason of a change, which may be left out. What the server refuses stands at the field. */
export function ReasonForm({
  submit,
  isFinal = false,
  note = 'For the audit log; nothing personal',
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

/** Says what is about to be done, and asks why. Closes when it is done. */
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
