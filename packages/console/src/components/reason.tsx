import type { ComponentChildren } from 'preact'
import { announce } from '../act.ts'
import type { ReasonGiven } from '../generated/operator.ts'
import type { Button } from './button.tsx'
import { Field, Form } from './form.tsx'
import { DrawerButton } from './layout.tsx'

type FormButtonProps = {
  /** The text of the button, and of the button that submits the form unless `submit` is given. */
  text: string
  submit?: string
  title?: string
  look?: typeof Button
  label?: string
  /** Whether the change cannot be undone. */
  isFinal?: boolean
  /** Describes the change above the form. */
  about?: ComponentChildren
  onSubmit: (fields: Record<string, string>) => PromiseLike<unknown>
  children: ComponentChildren
}

/** A button that opens a form in a drawer, which closes once the change is made. */
export function FormButton({ submit, isFinal, about, onSubmit, children, ...button }: FormButtonProps) {
  return (
    <DrawerButton {...button}>
      {close => (
        <>
          {about && <p>{about}</p>}
          <Form
            submit={submit ?? button.text}
            isFinal={isFinal}
            onSubmit={async fields => {
              await onSubmit(fields)
              close()
            }}
          >
            {children}
          </Form>
        </>
      )}
    </DrawerButton>
  )
}

type ReasonButtonProps = Pick<FormButtonProps, 'text' | 'look' | 'label' | 'isFinal'> & {
  title: string
  /** Says who reads the reason. */
  note?: string
  change: (given: ReasonGiven) => PromiseLike<unknown>
  /** What the toast says once the change is made. */
  done: string
  /** The prefix of the keys to reload. */
  reloads: string
  children: ComponentChildren
}

/** A button for a change with an optional reason: describes the change in a drawer, asks for the reason and makes the change. */
export function ReasonButton({ note, change, done, reloads, children, ...button }: ReasonButtonProps) {
  return (
    <FormButton
      {...button}
      about={children}
      onSubmit={async ({ reason = '' }) => {
        await change(reason === '' ? {} : { reason })
        announce(done, reloads)
      }}
    >
      <Field label="Reason" name="reason" note={note ?? 'For the audit log; no personal data'} />
    </FormButton>
  )
}
