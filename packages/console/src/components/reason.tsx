import type { ComponentChildren } from 'preact'
import { Field, Form } from './form.tsx'
import { Drawer } from './layout.tsx'

/** Asks why before something is done. What the server refuses stands at the field. */
export function ReasonDrawer({
  title,
  submit,
  note,
  isOpen,
  onClose,
  onSubmit,
  children,
}: {
  title: string
  submit: string
  /** Who reads the reason. */
  note: string
  isOpen: boolean
  onClose: () => void
  /** @param reason undefined if none was given */
  onSubmit: (reason: string | undefined) => Promise<unknown>
  children: ComponentChildren
}) {
  return (
    <Drawer title={title} isOpen={isOpen} onClose={onClose}>
      <p>{children}</p>
      <Form
        submit={submit}
        onSubmit={async ({ reason = '' }) => {
          await onSubmit(reason === '' ? undefined : reason)
          onClose()
        }}
      >
        {problemOf => <Field label="Reason" name="reason" problem={problemOf('reason')} note={note} />}
      </Form>
    </Drawer>
  )
}
