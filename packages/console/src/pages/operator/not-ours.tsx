import { useState } from 'preact/hooks'
import { act } from '../../act.ts'
import { Button } from '../../components/button.tsx'
import { Choice, Field, ReasonField } from '../../components/form.tsx'
import { Panel } from '../../components/layout.tsx'
import { Person } from '../../components/person.tsx'
import { ReviewedForm } from '../../components/reviewed-form.tsx'
import { type Column, TablePanel } from '../../components/table.tsx'
import { Amount, State } from '../../components/values.tsx'
import { plural } from '../../format.ts'
import type { ExceptionsByText, PayoutRule } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { reload, useList, useLoaded } from '../../query.ts'
import { toast } from '../../toasts.ts'

const actions = {
  close: 'Close open exceptions',
  rule: 'Close future exceptions by a rule, which takes two people',
} as const

type Planned = { rail: string; text: string; isRule: boolean; found: ExceptionsByText }

/** Closes exceptions that are unrelated to our payments, by their bank text: either open exceptions, or future ones by a rule. */
export function CloseByText() {
  const rails = useLoaded('operator-rails', () => operators.listRails()).value?.rails.filter(
    ({ kind }) => kind === 'files',
  )
  const [count, setCount] = useState(0)
  if (rails === undefined || rails.length === 0) return null
  return (
    <Panel title="Entries that are not ours">
      <ReviewedForm
        key={count}
        submit="Preview"
        plan={async ({ rail = '', text = '', action }): Promise<Planned> => {
          const found = await operators.previewPayoutExceptions({ rail, text })
          return { rail, text, isRule: action === 'rule', found }
        }}
        confirm={({ isRule, found }) =>
          isRule ? 'Create the rule' : found.count === 0 ? null : 'Close the exceptions'
        }
        onConfirm={async ({ rail, text, isRule, found: { fingerprint } }, { note = '' }) => {
          if (isRule) {
            const { status } = await operators.createPayoutRule({ rail, text, note })
            toast(status === 'active' ? 'The rule is active' : 'Proposed; another person must create the same rule')
          } else {
            const closed = await operators.closePayoutExceptionsByText({ rail, text, note, fingerprint })
            toast(`${plural(closed.count, 'exception')} closed`)
          }
          setCount(count + 1)
          reload('operator-exceptions', 'operator-rules')
        }}
        review={({ found, isRule }) => (
          <>
            <Found found={found} />
            {(isRule || found.count > 0) && <ReasonField />}
          </>
        )}
      >
        <div class="form-row">
          <Choice label="Rail" name="rail" choices={rails.map(({ name }) => name)} />
          <Field label="Bank text" name="text" note="At least 5 characters; case does not matter" isRequired />
          <Choice label="Action" name="action" choices={actions} />
        </div>
      </ReviewedForm>
    </Panel>
  )
}

function Found({ found: { sums, count, keptCount } }: { found: ExceptionsByText }) {
  return (
    <>
      {count === 0 && <p>No open exceptions with this text are certain not to be ours.</p>}
      {sums.map(({ direction, count: of, sum }) => (
        <p key={`${sum.currency} ${direction}`}>
          {of} {direction === 'in' ? 'in' : 'out'}: <Amount money={sum} />
        </p>
      ))}
      {keptCount > 0 && <p class="notice">{keptCount} more may concern our payments and stay open.</p>}
    </>
  )
}

const columns: Column<PayoutRule>[] = [
  { title: 'Text', cell: ({ text }) => text },
  { title: 'State', cell: ({ status }) => <State state={status} /> },
  { title: 'Rail', cell: ({ rail }) => rail, isMinor: true },
  { title: 'Reason', cell: ({ note }) => note, isMinor: true },
  { title: 'Proposed by', cell: ({ proposedBy }) => <Person who={proposedBy} />, isMinor: true },
  { title: 'Closed', cell: ({ closedCount }) => closedCount, isFigure: true },
  { title: 'Change', cell: rule => <Changes rule={rule} />, isTitleHidden: true },
]

/** Lists the rules. Renders nothing if there are none. */
export function Rules() {
  const listed = useList('operator-rules', () => operators.listPayoutRules({ take: 50 }))
  if (listed.rows?.length === 0) return null
  return <TablePanel title="Rules" columns={columns} list={listed} />
}

function Changes({ rule: { id, rail, text, note, status } }: { rule: PayoutRule }) {
  const change = (call: () => PromiseLike<unknown>, done: string) => () => act(call, done, 'operator-rules')
  if (status === 'ended') return null
  const confirm = () =>
    act(
      () => operators.createPayoutRule({ rail, text, note }),
      ({ status: after }) => (after === 'active' ? 'Confirmed' : 'Another person must confirm the rule'),
      'operator-rules',
    )
  const button = (verb: string, press: () => unknown) => (
    <Button act={press} label={`${verb} ${text}`}>
      {verb}
    </Button>
  )
  return (
    <span class="actions">
      {status === 'proposed' && button('Confirm', confirm)}
      {status === 'active' &&
        button(
          'Pause',
          change(() => operators.pausePayoutRule(id), 'Paused'),
        )}
      {status === 'paused' &&
        button(
          'Resume',
          change(() => operators.resumePayoutRule(id), 'Resumed'),
        )}
      {button(
        'End',
        change(() => operators.endPayoutRule(id), 'Ended'),
      )}
    </span>
  )
}
