import {
  type BankAccountEU,
  type BankAccountUK,
  type Event,
  type Member,
  type MemberStatementLine,
  type Money,
  money,
  toDecimal,
  type WithdrawalWithStatus,
} from '@midmonth/sdk'
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import { act, actUnlessUndone, announce } from '../act.ts'
import { api, partnerId, send } from '../api.ts'
import { BadButton, Button, TextButton } from '../components/button.tsx'
import { download, ExportButton, type ExportColumn } from '../components/export.tsx'
import { DayFilter, useFilters } from '../components/filters.tsx'
import { Field, Form } from '../components/form.tsx'
import { Drawer, DrawerButton, Figure, KeyValuesPanel, Page, PendingPage } from '../components/layout.tsx'
import { MemberForm } from '../components/member-form.tsx'
import { MetadataPanel } from '../components/metadata.tsx'
import { FormButton, ReasonButton } from '../components/reason.tsx'

import { type Column, TablePanel } from '../components/table.tsx'
import { Amount, Day, Id, State, Time } from '../components/values.tsx'
import { formatMoney, inWords } from '../format.ts'
import { changesOf } from '../member-fields.ts'
import { operators } from '../operators.ts'
import { at, hrefOfId, hrefOfRecord } from '../places.ts'
import { prefetch, useList, useLoaded } from '../query.ts'
import { isSandbox, may, session } from '../session.ts'
import { withdrawalStatuses } from '../statuses.ts'

type MemberId = Member['memberId']

export function prefetchMember(id: string): void {
  prefetch(`member ${id}`, () => api.members.get(id as MemberId))
}

export default function MemberPage() {
  const { id } = useRoute().params as { id: MemberId }
  const { value, error, reload: retry } = useLoaded(`member ${id}`, () => api.members.get(id))
  if (value === undefined) return <PendingPage title="Member" error={error} onRetry={retry} />
  return <LoadedMember member={value} />
}

function LoadedMember({ member }: { member: Member }) {
  const { memberId, firstName, lastName, status } = member
  /** The field to focus in the form; empty for the first. */
  const [changing, setChanging] = useState<string>()
  const masked = useMasked(member)
  const balance = useLoaded(`member-balance ${memberId}`, () => api.members.getBalance(memberId))
  const support = useLoaded(`member-support ${memberId}`, () =>
    send<Support>('GET', `/console/v1/members/${memberId}/support`),
  )
  return (
    <Page title={`${firstName} ${lastName}`} actions={<Actions member={member} onChange={() => setChanging('')} />}>
      <div class="row row-wrap above">
        <State state={status} />
        <span class="record-to">{member.email}</span>
      </div>
      {support.value?.refusal && (
        <CannotWithdraw
          member={member}
          refusal={support.value.refusal}
          currency={balance.value?.available.currency}
          onChange={setChanging}
        />
      )}
      {balance.value && (
        <div class="figures">
          <Figure
            title="Available now"
            note={support.value?.refusal === null ? 'Can be withdrawn' : undefined}
            isLeading
            money={balance.value.available}
          />
          <Figure title="Minimum withdrawal" money={balance.value.lowerLimit} />
          <Figure title="Maximum withdrawal" money={balance.value.upperLimit} />
          <Figure title="Pay cycle ends">
            <Day day={balance.value.payCycle.endDate} short />
          </Figure>
        </div>
      )}
      <div class="columns">
        <div class="stack">
          {support.value !== undefined && support.value.refused.length > 0 && (
            <TablePanel
              title="Refused attempts in the last 7 days"
              label="Refused attempts"
              columns={refusedColumns}
              list={{ rows: support.value.refused }}
            />
          )}
          <Statement memberId={memberId} />
          <Withdrawals memberId={memberId} />
          {/* The events of the member and of their withdrawals. */}
          <TablePanel
            title="Events in the last 30 days"
            label="Events"
            columns={eventColumns}
            list={{ rows: support.value?.events, error: support.error, reload: support.reload }}
            empty="No events in the last 30 days"
          />
        </div>
        <div class="stack">
          <KeyValuesPanel
            entries={[
              ['Member', <Id key="id" id={memberId} isLink={false} />],
              ['Worker id', <Id key="worker" id={member.workerId} isWhole />],
              ['Tier', member.tier],
              ['Phone', member.phone ?? '–'],
              ...masked,
              ['Deducted by payroll', member.enablePayroll ? 'Yes' : 'No'],
            ]}
          />
          <MetadataPanel metadata={member.metadata} />
        </div>
      </div>
      <Drawer
        title="Edit the member"
        isOpen={changing !== undefined}
        focus={changing}
        onClose={() => setChanging(undefined)}
      >
        <MemberForm
          member={member}
          submit="Save"
          onSubmit={async entered => {
            const changes = changesOf(member, entered)
            if (Object.keys(changes).length > 0) await api.members.update(memberId, changes)
            announce('Saved', 'member')
            setChanging(undefined)
          }}
        />
      </Drawer>
    </Page>
  )
}

function Actions({ member: { memberId, firstName, status }, onChange }: { member: Member; onChange: () => void }) {
  const [isOffboarding, setIsOffboarding] = useState(false)
  const offboard = () => {
    setIsOffboarding(true)
    actUnlessUndone(
      `${firstName} has been offboarded and can no longer withdraw.`,
      () => api.members.offboard(memberId),
      { changes: ['member'], onEnd: () => setIsOffboarding(false) },
    )
  }
  if (!may('payroll')) return null
  return (
    <>
      <FormButton
        text="Data"
        submit="Save the page"
        title="Everything about this person"
        about="A page for a request of access: profile, pay, withdrawals and who has seen them, with the whole account."
        onSubmit={async ({ reason = '' }) => {
          const path = `/console/v1/members/${memberId}/data-export`
          download(`${memberId}.html`, await send('POST', path, { body: { reason } }))
        }}
      >
        <Field label="Reason" name="reason" note="Recorded in the audit log with your name" isRequired />
      </FormButton>
      <Button act={onChange}>Change</Button>
      {status !== 'inactive' && (
        <BadButton disabled={isOffboarding} act={offboard}>
          Offboard
        </BadButton>
      )}
    </>
  )
}

type RefusalCause = 'installation' | 'partner' | 'float' | 'cycle' | 'member' | 'review' | 'limit' | 'account' | 'funds'
type Refusal = { cause: RefusalCause; message: string }
type Support = {
  refusal: Refusal | null
  refused: { id: string; createdAt: string; errorCodes: string[] }[]
  events: Event[]
}

/** Causes that readers of the console see in more detail than members do. */
const causesInWords: Partial<Record<RefusalCause, string>> = {
  funds: 'Less than the minimum withdrawal is available.',
  partner: 'The operator has paused withdrawals for all members.',
  float: 'The free float is below its floor, so no member can withdraw.',
}

/** Says why the member cannot withdraw and offers the remedy. */
function CannotWithdraw(props: RemedyProps) {
  const { message, cause } = props.refusal
  return (
    <section class="refusal row row-wrap ends" aria-label="Cannot withdraw">
      <div>
        <h2>Cannot withdraw</h2>
        <p>{causesInWords[cause] ?? `${message}.`}</p>
      </div>
      <div class="actions">
        <Remedy {...props} />
      </div>
    </section>
  )
}

type RemedyProps = {
  member: Member
  refusal: Refusal
  currency: Money['currency'] | undefined
  onChange: (field: string) => void
}

function Remedy({
  member: { memberId, firstName, status, accountDetails },
  refusal: { cause },
  currency,
  onChange,
}: RemedyProps) {
  const isOperator = session.value?.isOperator === true
  const changes: Partial<Record<RefusalCause, [field: string, title: string]>> = {
    account: ['accountHolder', accountDetails === null ? 'Add a bank account' : 'Change the bank account'],
    limit: ['tier', 'Change the tier'],
  }
  const change = changes[cause]
  if (change !== undefined) {
    const [field, title] = change
    return may('payroll') ? (
      <Button act={() => onChange(field)}>{title}</Button>
    ) : (
      <span class="quiet">Ask payroll</span>
    )
  }
  if (cause === 'member' && status === 'invited' && may('payroll'))
    return (
      <Button act={() => act(() => api.members.activate(memberId), `${firstName} is active`, 'member')}>
        Activate
      </Button>
    )
  if (cause === 'member' && status === 'inactive' && may('payroll')) {
    const path = `/console/v1/members/${memberId}/reinstate`
    return <Button act={() => act(() => send('POST', path), `${firstName} is reinstated`, 'member')}>Reinstate</Button>
  }
  if (cause === 'member') return <span class="quiet">Ask payroll</span>
  if (cause === 'funds') {
    const pay = currency && money('100', currency)
    return (
      <>
        {may('payroll') && (
          <a class="button" href={at('pay-runs')}>
            Add pay
          </a>
        )}
        {isSandbox.value && may('developer') && status === 'active' && pay && (
          <Button act={() => act(() => api.sandbox.members.fund(memberId, { amount: pay }), 'Paid in', 'member')}>
            Add {formatMoney(pay)} of test pay
          </Button>
        )}
      </>
    )
  }
  if (!isOperator) return <span class="quiet">Ask the operator</span>
  if (cause === 'review')
    return (
      <ReasonButton
        text="Release"
        title={`Release ${firstName}`}
        change={body => operators.releaseMember(memberId, body)}
        done={`${firstName} can withdraw again`}
        reloads="member"
      >
        The bank returned a payment for a reason that needs review. Release the member once this is resolved with the
        bank; they can withdraw again at once.
      </ReasonButton>
    )
  const [href, title] =
    cause === 'partner' || cause === 'float'
      ? [`/console/operator/partners/${partnerId.value}`, cause === 'float' ? 'Fund the float' : 'Resume the partner']
      : ['/console/operator/health', 'Open Health']
  return (
    <a class="button" href={href}>
      {title}
    </a>
  )
}

const refusalsInWords: Record<string, string> = {
  MemberInsufficientFunds: 'More than the available balance',
  AmountBelowLowerLimit: 'Below the minimum withdrawal',
  AmountAboveUpperLimit: 'Above the maximum withdrawal',
  MemberNotEligible: 'Not active, held for review, or the tier’s limit is reached',
  BankAccountInvalid: 'No bank account, or the account fails its check',
  UnprocessableEntity: 'On-demand pay was unavailable',
  Conflict: 'The quote had expired',
}

const refusedColumns: Column<Support['refused'][number]>[] = [
  { title: 'When', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'Why', cell: ({ errorCodes }) => errorCodes.map(code => refusalsInWords[code] ?? inWords(code)).join('; ') },
  {
    title: 'Request',
    cell: ({ id }) => <Id id={id} isLink={may('support', 'developer')} />,
    isMinor: true,
  },
]

type AccountDetails = BankAccountUK | BankAccountEU

/** The bank account and the date of birth, masked until the reader gives a reason for the audit log. */
function useMasked({ memberId, accountDetails: account, dob }: Member): [string, ComponentChildren][] {
  const [revealed, setRevealed] = useState<{ accountDetails: AccountDetails | null; dob: string | null }>()
  const reveal = async (reason: string) => {
    setRevealed(await send('POST', `/console/v1/members/${memberId}/account`, { body: { reason } }))
  }
  const hasAny = account !== null || dob !== null
  const button =
    revealed === undefined ? (
      <DrawerButton look={TextButton} text="Show" title="Show the account and date of birth">
        {() => (
          <Form submit="Show" onSubmit={({ reason = '' }) => reveal(reason)}>
            <Field label="Reason" name="reason" note="Recorded in the audit log with your name" isRequired />
          </Form>
        )}
      </DrawerButton>
    ) : (
      <TextButton act={() => setRevealed(undefined)}>Hide</TextButton>
    )
  return [
    [
      'Account',
      <span key="account" class="account">
        {account === null ? 'None' : <AccountNumber account={account} revealed={revealed?.accountDetails ?? null} />}
        {hasAny && may('payroll') && button}
      </span>,
    ],
    ['Date of birth', dob === null || revealed === undefined ? (dob ?? '–') : <Day key="dob" day={revealed.dob} />],
  ]
}

function AccountNumber({ account, revealed }: { account: AccountDetails; revealed: AccountDetails | null }) {
  const numberOf = (details: AccountDetails) =>
    'iban' in details ? details.iban : `${details.sortCode} ${details.accountNumber}`
  return (
    <>
      <span>{account.accountHolder}</span>
      <code>{revealed === null ? `•••• ${numberOf(account).slice(-4)}` : numberOf(revealed)}</code>
    </>
  )
}

/** Combines the lines of one movement with the same reason: the fee of a withdrawal is a separate line. */
type StatementEntry = Pick<
  MemberStatementLine,
  'id' | 'movementId' | 'reason' | 'createdAt' | 'change' | 'balanceAfter'
>

/** Newest first, like the lines. */
function entriesOf(lines: MemberStatementLine[]): StatementEntry[] {
  const entries: StatementEntry[] = []
  for (const line of lines) {
    const last = entries.at(-1)
    if (last === undefined || last.movementId !== line.movementId || last.reason !== line.reason) entries.push(line)
    else {
      const { available, owed } = last.change
      const change = {
        available: { ...available, amount: available.amount + line.change.available.amount },
        owed: { ...owed, amount: owed.amount + line.change.owed.amount },
      }
      entries[entries.length - 1] = { ...last, change }
    }
  }
  return entries
}

const reasonsInWords: Record<string, string> = {
  'withdrawal.held': 'Withdrawal',
  'withdrawal.cancelled': 'Withdrawal cancelled',
  'withdrawal.failed': 'Withdrawal failed',
  'withdrawal.returned': 'Withdrawal returned by the bank',
  'pay_run.available': 'Pay added',
  'pay_run.reverted': 'Pay run reverted',
  'pay_cycle.closed': 'Pay cycle closed',
}

function statementColumns(withdrawals: ReadonlyMap<string, WithdrawalWithStatus>): Column<StatementEntry>[] {
  return [
    {
      title: 'What',
      cell: ({ reason, movementId }) => {
        const withdrawal = reason === 'withdrawal.held' ? withdrawals.get(movementId) : undefined
        const href = hrefOfId(movementId)
        const title = reasonsInWords[reason] ?? inWords(reason)
        return (
          <span class="facts row row-wrap">
            {href === undefined ? (
              title
            ) : (
              <a class="link" href={href}>
                {title}
              </a>
            )}
            {withdrawal && (
              <>
                <State state={withdrawal.status} />
                {withdrawal.fee.amount > 0 && (
                  <span class="quiet">
                    fee <Amount money={withdrawal.fee} />
                  </span>
                )}
              </>
            )}
          </span>
        )
      },
    },
    { title: 'When', cell: ({ createdAt }) => <Time at={createdAt} /> },
    { title: 'Change', cell: ({ change }) => <Amount money={change.available} signed />, isFigure: true, isLead: true },
    { title: 'Available', cell: ({ balanceAfter }) => <Amount money={balanceAfter.available} />, isFigure: true },
  ]
}

/** Explains the balance line by line, as of any day. */
function Statement({ memberId }: { memberId: MemberId }) {
  const filters = useFilters()
  const day = filters.get('asOf')
  // The end of the day in the reader's time zone.
  const end = new Date(`${day}T23:59:59.999`)
  // The address may contain no day or an invalid one.
  const asOf = Number.isNaN(end.getTime()) ? {} : { asOf: end.toISOString() }
  const load = (take: number) => api.members.listStatementLines(memberId, { ...asOf, take })
  const listed = useList(`member-statement ${memberId} ${day}`, load, { take: 20 })
  const { value: withdrawals } = useLoaded(`member-withdrawal-states ${memberId}`, async () => {
    const { withdrawals } = await api.withdrawals.list({ memberId, statuses: withdrawalStatuses, take: 200 })
    return new Map<string, WithdrawalWithStatus>(withdrawals.map(withdrawal => [withdrawal.id, withdrawal]))
  })
  return (
    <TablePanel
      title="Statement"
      aside={
        <div class="actions">
          <DayFilter label="As of" name="asOf" />
          <ExportButton name={`statement-${memberId}`} columns={csvColumns} rows={listed.all} />
        </div>
      }
      columns={statementColumns(withdrawals ?? new Map())}
      list={{ ...listed, rows: listed.rows && entriesOf(listed.rows) }}
      empty="No pay and no withdrawals yet"
    >
      {listed.first !== undefined && listed.first.closing.owed.amount > 0 && (
        <p class="panel-note">
          Owes <Amount money={listed.first.closing.owed} />, to be repaid first from the next pay run.
        </p>
      )}
    </TablePanel>
  )
}

const csvColumns: ExportColumn<MemberStatementLine>[] = [
  'createdAt',
  'reason',
  'movementId',
  ['change', line => toDecimal(line.change.available)],
  ['available', line => toDecimal(line.balanceAfter.available)],
  ['currency', line => line.change.available.currency],
]

const withdrawalColumns: Column<WithdrawalWithStatus>[] = [
  { title: 'Requested', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'State', cell: ({ status }) => <State state={status} /> },
  { title: 'Withdrawal', cell: ({ id }) => <Id id={id} />, isMinor: true },
  { title: 'Paid out', cell: ({ netAmount }) => <Amount money={netAmount} />, isFigure: true },
]

function Withdrawals({ memberId }: { memberId: MemberId }) {
  const load = (take: number) => api.withdrawals.list({ memberId, statuses: withdrawalStatuses, take })
  const listed = useList(`member-withdrawals ${memberId}`, load, { take: 10 })
  return (
    <TablePanel
      title="Withdrawals"
      columns={withdrawalColumns}
      list={listed}
      hrefOf={hrefOfRecord}
      empty="No withdrawals yet"
    />
  )
}

const eventColumns: Column<Event>[] = [
  { title: 'When', cell: ({ timestamp }) => <Time at={timestamp} /> },
  { title: 'Event', cell: ({ type }) => <code>{type}</code> },
  {
    title: 'What',
    cell: ({ data }) =>
      'changed' in data ? data.changed.join(', ') : 'withdrawalId' in data ? <Id id={data.withdrawalId} /> : '',
  },
]
