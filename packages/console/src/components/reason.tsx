import type { ComponentChildren } from 'preact'
import { announce } from '../act.ts'
import type { ReasonGiven } from '../generated/operator.ts'
import type { Button } from './button.tsx'
import { Field, Form } from './form.tsx'
import { DrawerButton } from './layout.tsx'

/** A button for a change with an optional reason: describes the change in a drawer, asks for the reason and makes the change. */
export function ReasonButton({
  text,
  title,
  look,
  label,
  isFinal,
  note = 'For the audit log; no personal data',
  change,
  done,
  reloads,
  children,
}: {
  text: string
  title: string
  look?: typeof Button
  label?: string
  /** Whether the change cannot be undone. */
  isFinal?: boolean
  /** Says who reads the reason. */
  note?: string
  change: (given: ReasonGiven) => PromiseLike<unknown>
  /** What the toast says once the change is made. */
  done: string
  /** The prefix of the keys to reload. */
  reloads: string
  children: ComponentChildren
}) {
  return (
    <DrawerButton text={text} title={title} look={look} label={label}>
      {close => (
        <>
          <p>{children}</p>
          <Form
            submit={text}
            isFinal={isFinal}
            onSubmit={async ({ reason = '' }) => {
              await change(reason === '' ? {} : { reason })
              announce(done, reloads)
              close()
            }}
          >
            <Field label="Reason" name="reason" note={note} />
          </Form>
        </>
      )}
    </DrawerButton>
  )
}
