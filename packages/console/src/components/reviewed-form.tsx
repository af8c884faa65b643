import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Form } from './form.tsx'

type ProblemOf = (name: string) => string | undefined

/**
 * A form in two steps: what is entered, then what would change, which is confirmed. Going back keeps what was entered.
 * @param props.plan reads the fields and finds out what they would change
 * @param props.confirm what the button of the second step says; null if there is nothing to confirm
 */
export function ReviewedForm<Plan>({
  submit = 'Show what changes',
  plan,
  children,
  review,
  confirm,
  onConfirm,
}: {
  submit?: string
  plan: (fields: Record<string, string>) => PromiseLike<Plan>
  children: (problemOf: ProblemOf) => ComponentChildren
  review: (planned: Plan, problemOf: ProblemOf) => ComponentChildren
  confirm: (planned: Plan) => string | null
  onConfirm: (planned: Plan, fields: Record<string, string>) => PromiseLike<unknown>
}) {
  const [planned, setPlanned] = useState<Plan>()
  const second = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (planned !== undefined) second.current?.focus()
  }, [planned])
  const label = planned === undefined ? null : confirm(planned)
  return (
    <>
      <div hidden={planned !== undefined}>
        <Form submit={submit} onSubmit={async fields => setPlanned(await plan(fields))}>
          {children}
        </Form>
      </div>
      {planned !== undefined && (
        <div class="review" ref={second} tabIndex={-1}>
          {label === null ? (
            review(planned, () => undefined)
          ) : (
            <Form submit={label} onSubmit={fields => onConfirm(planned, fields)}>
              {problemOf => review(planned, problemOf)}
            </Form>
          )}
          <div>
            <button type="button" class="button" onClick={() => setPlanned(undefined)}>
              Back
            </button>
          </div>
        </div>
      )}
    </>
  )
}

export type Change = { name: string; before: ComponentChildren; after: ComponentChildren }

/** What something is now, and what it would be. */
export function Changes({ label, changes }: { label: string; changes: Change[] }) {
  return (
    <table class="changes" aria-label={label}>
      <thead>
        <tr>
          <th scope="col">
            <span class="hidden-label">What</span>
          </th>
          <th scope="col">Now</th>
          <th scope="col">Then</th>
        </tr>
      </thead>
      <tbody>
        {changes.map(({ name, before, after }) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{before}</td>
            <td>{after}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
