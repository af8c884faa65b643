import { useState } from 'preact/hooks'
import { act } from '../../act.ts'
import { ActButton } from '../../components/act-button.tsx'
import { Choice, Field } from '../../components/form.tsx'
import { Panel } from '../../components/layout.tsx'
import { Person } from '../../components/person.tsx'
import { ReviewedForm } from '../../components/reviewed-form.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Amount, State } from '../../components/values.tsx'
import type { ExceptionsByText, PayoutRule } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { reload, useList, useLoaded } from '../../query.ts'
import { toast } from '../../toasts.ts'

const actions = {
  close: 'Close what is open',
  rule: 'Close what comes, by a rule of two people',
} as const

type Planned = { rail: string; text: string; isRule: boolean; found: ExceptionsByText }

/** Closes by a text what is not ours: the exceptions that are open, or new ones by a rule. */
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
        confirm={({ isRule, found }) => (isRule ? 'Make the rule' : found.count === 0 ? null : 'Close them')}
        onConfirm={async ({ rail, text, isRule, found: { fingerprint } }, { note = '' }) => {
          if (isRule) {
            const { status } = await operators.createPayoutRule({ rail, text, note })
            toast(status === 'active' ? 'The rule is active' : 'Proposed: another person must make the same rule')
          } else {
            const closed = await operators.closePayoutExceptionsByText({ rail, text, note, fingerprint })
            toast(`Closed ${closed.count}`)
          }
          setCount(count + 1)
          reload('operator-exceptions', 'operator-rules')
        }}
        review={({ found, isRule }, problemOf) => (
          <>
            <Found found={found} />
            {(isRule || found.count > 0) && (
              <Field
                label="Why"
                name="note"
                problem={problemOf('note')}
                note="For operators and the audit log; nothing personal"
                isRequired
              />
            )}
          </>
        )}
      >
        {problemOf => (
          <div class="form-row">
            <Choice label="Rail" name="rail" choices={rails.map(({ name }) => name)} />
            <Field
              label="Text of the bank"
              name="text"
              problem={problemOf('text')}
              note="At least 5 characters, in any letter case"
              isRequired
            />
            <Choice label="What follows" name="action" choices={Object.entries(actions)} />
          </div>
        )}
      </ReviewedForm>
    </Panel>
  )
}

function Found({ found: { sums, count, keptCount } }: { found: ExceptionsByText }) {
  return (
    <>
      {count === 0 && <p>Nothing with this text is open and certainly not ours.</p>}
      {sums.map(({ direction, count: of, sum }) => (
        <p key={`${sum.currency} ${direction}`}>
          {of} {direction === 'in' ? 'in' : 'out'}: <Amount money={sum} />
        </p>
      ))}
      {keptCount > 0 && <p class="notice">{keptCount} more may be about something of ours and stay open.</p>}
    </>
  )
}

const columns: Column<PayoutRule>[] = [
  { title: 'Text', cell: ({ text }) => text },
  { title: 'State', cell: ({ status }) => <State state={status} /> },
  { title: 'Rail', cell: ({ rail }) => rail, isMinor: true },
  { title: 'Why', cell: ({ note }) => note, isMinor: true },
  { title: 'Proposed by', cell: ({ proposedBy }) => <Person who={proposedBy} />, isMinor: true },
  { title: 'Closed', cell: ({ closedCount }) => closedCount, isFigure: true },
  { title: 'Change', cell: rule => <Changes rule={rule} />, isTitleHidden: true },
]

/** The rules, once there are any. */
export function Rules() {
  const listed = useList(
    'operator-rules',
    () => operators.listPayoutRules({ take: 50 }),
    page => page.rules,
  )
  if (listed.rows?.length === 0) return null
  return (
    <Panel title="Rules" isFlush>
      <Table label="Rules" columns={columns} list={listed} keyOf={({ id }) => id} />
    </Panel>
  )
}

function Changes({ rule: { id, rail, text, note, status } }: { rule: PayoutRule }) {
  const change = (doing: () => PromiseLike<unknown>, done: string) => () => act(doing, done, 'operator-rules')
  if (status === 'ended') return null
  const confirm = () =>
    act(
      () => operators.createPayoutRule({ rail, text, note }),
      ({ status: after }) => (after === 'active' ? 'Confirmed' : 'Another person must confirm the rule'),
      'operator-rules',
    )
  return (
    <span class="actions">
      {status === 'proposed' && (
        <ActButton act={confirm} label={`Confirm ${text}`}>
          Confirm
        </ActButton>
      )}
      {status === 'active' && (
        <ActButton act={change(() => operators.pausePayoutRule(id), 'Paused')} label={`Pause ${text}`}>
          Pause
        </ActButton>
      )}
      {status === 'paused' && (
        <ActButton act={change(() => operators.resumePayoutRule(id), 'Resumed')} label={`Resume ${text}`}>
          Resume
        </ActButton>
      )}
      <ActButton act={change(() => operators.endPayoutRule(id), 'Ended')} label={`End ${text}`}>
        End
      </ActButton>
    </span>
  )
}
