import type { Money } from '@midmonth/sdk'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Button } from './button.tsx'
import { Form } from './form.tsx'
import { Amount } from './values.tsx'

type ReviewedFormProps<Plan> = {
  submit?: string
  plan: (fields: Record<string, string>) => PromiseLike<Plan>
  children: ComponentChildren
  review: (planned: Plan) => ComponentChildren
  confirm: (planned: Plan) => string | null
  onConfirm: (planned: Plan, fields: Record<string, string>) => PromiseLike<unknown>
}

/**
 * A form in two steps: the reader fills it in, then reviews and confirms the changes. Going back keeps the entries.
 * @param props.plan parses the fields and works out what would change
 * @param props.confirm the label of the second step's button; null if there is nothing to confirm
 */
export function ReviewedForm<Plan>(props: ReviewedFormProps<Plan>) {
  const { submit = 'Review changes', plan, children, review, confirm, onConfirm } = props
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
        <div class="stack review" ref={second} tabIndex={-1}>
          {label === null ? (
            review(planned)
          ) : (
            <Form submit={label} onSubmit={fields => onConfirm(planned, fields)}>
              {review(planned)}
            </Form>
          )}
          <div>
            <Button act={() => setPlanned(undefined)}>Back</Button>
          </div>
        </div>
      )}
    </>
  )
}

export type Change = { name: string; before: ComponentChildren; after: ComponentChildren }

/** How adding minor units, which may be negative, would change an amount. */
export function changedBy(name: string, before: Money, minor: number): Change {
  const after = { ...before, amount: before.amount + minor }
  return { name, before: <Amount money={before} />, after: <Amount money={after} /> }
}

/** Compares current and future values. */
export function Changes({ label, changes }: { label: string; changes: Change[] }) {
  return (
    <table class="changes" aria-label={label}>
      <thead>
        <tr>
          <th scope="col">
            <span class="hidden-label">Field</span>
          </th>
          <th scope="col">Now</th>
          <th scope="col">After</th>
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
