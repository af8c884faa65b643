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
} from '@openwage/sdk'
import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import { act, actUnlessUndone } from '../act.ts'
import { api, send } from '../api.ts'
import { ActButton } from '../components/act-button.tsx'
import { ExportButton } from '../components/export.tsx'
import { DayFilter, useFilters } from '../components/filters.tsx'
import { Field, Form } from '../components/form.tsx'
import { Drawer, Figure, KeyValues, Page, Panel, PendingPage } from '../components/layout.tsx'
import { MemberForm } from '../components/member-form.tsx'
import { Empty } from '../components/states.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Amount, Day, Id, State, Time } from '../components/values.tsx'
import { formatMoney, inWords } from '../format.ts'
import { changesOf } from '../member-fields.ts'
import { at, hrefOfId } from '../places.ts'
import { prefetch, reload, useList, useLoaded } from '../query.ts'
import { isSandbox, may } from '../session.ts'
import { withdrawalStatuses } from '../statuses.ts'
import { toast } from '../toasts.ts'

type MemberId = Member['memberId']

export function prefetchMember(id: string): void {
  prefetch(`member ${id}`, () => api.members.get(id as MemberId))
}

const back = () => ({ href: at('members'), title: 'Members' })

export default function MemberPage() {
  const { id } = useRoute().params as { id: MemberId }
  const { value, error, reload: retry } = useLoaded(`member ${id}`, () => api.members.get(id))
  if (value === undefined) return <PendingPage title="Member" back={back()} error={error} onRetry={retry} />
  return <Shown member={value} />
}

function Shown({ member }: { member: Member }) {
  const { memberId, firstName, lastName, status } = member
  const [isChanging, setIsChanging] = useState(false)
  const balance = useLoaded(`member-balance ${memberId}`, () => api.members.getBalance(memberId))
  return (
    <Page
      title={`${firstName} ${lastName}`}
      back={back()}
      actions={
        <Actions member={member} currency={balance.value?.available.currency} onChange={() => setIsChanging(true)} />
      }
    >
      <div class="record-head">
        <State state={status} />
        <span class="record-to">{member.email}</span>
      </div>
      {balance.value && (
        <div class="figures">
          <Figure
            title="Available now"
            note={balance.value.isTemporarilyUnavailable ? 'Withdrawals are refused for now' : undefined}
          >
            <Amount money={balance.value.available} />
          </Figure>
          <Figure title="Minimum withdrawal">
            <Amount money={balance.value.lowerLimit} />
          </Figure>
          <Figure title="Maximum withdrawal">
            <Amount money={balance.value.upperLimit} />
          </Figure>
          <Figure title="Pay cycle ends">
            <Day day={balance.value.payCycle.endDate} short />
          </Figure>
        </div>
      )}
      <div class="columns">
        <div class="stack">
          <Statement memberId={memberId} />
          <Withdrawals memberId={memberId} />
          {may('support', 'developer') && <Events memberId={memberId} />}
        </div>
        <Panel title="Details">
          <KeyValues
            entries={[
              ['Member', <Id key="id" id={memberId} isLink={false} />],
              ['Worker id', member.workerId === null ? '–' : <Id key="worker" id={member.workerId} isWhole />],
              ['Tier', member.tier],
              ['Phone', member.phone ?? '–'],
              ['Account', <Account key="account" memberId={memberId} account={member.accountDetails} />],
              ['Date of birth', member.dob === null ? '–' : <Day key="dob" day={member.dob} />],
              ['Deducted by payroll', member.enablePayroll ? 'Yes' : 'No'],
            ]}
          />
        </Panel>
      </div>
      <Drawer title="Change the member" isOpen={isChanging} onClose={() => setIsChanging(false)}>
        <MemberForm
          member={member}
          submit="Save"
          onSubmit={async entered => {
            const changes = changesOf(member, entered)
            if (Object.keys(changes).length > 0) await api.members.update(memberId, changes)
            toast('Saved')
            reload('member')
            setIsChanging(false)
          }}
        />
      </Drawer>
    </Page>
  )
}

function Actions({
  member: { memberId, firstName, status },
  currency,
  onChange,
}: {
  member: Member
  currency: Money['currency'] | undefined
  onChange: () => void
}) {
  const [isGoing, setIsGoing] = useState(false)
  const offboard = () => {
    setIsGoing(true)
    actUnlessUndone(`${firstName} is offboarded and can no longer withdraw.`, () => api.members.offboard(memberId), {
      changes: ['member'],
      onEnd: () => setIsGoing(false),
    })
  }
  const pay = currency && money('100', currency)
  return (
    <>
      {isSandbox.value && may('developer') && status === 'active' && pay && (
        <ActButton act={() => act(() => api.sandbox.members.fund(memberId, { amount: pay }), 'Paid in', 'member')}>
          Add {formatMoney(pay)} of pay
        </ActButton>
      )}
      {status === 'invited' && may('payroll') && (
        <ActButton act={() => act(() => api.members.activate(memberId), `${firstName} is active`, 'member')}>
          Activate
        </ActButton>
      )}
      {may('payroll') && (
        <>
          <button type="button" class="button" onClick={onChange}>
            Change
          </button>
          {status !== 'inactive' && (
            <button type="button" class="button" disabled={isGoing} onClick={offboard}>
              Offboard
            </button>
          )}
        </>
      )}
    </>
  )
}

type AccountDetails = BankAccountUK | BankAccountEU

/** Masked, until the reader gives a reason, which goes into the audit log. */
function Account({ memberId, account }: { memberId: MemberId; account: AccountDetails | null }) {
  const [revealed, setRevealed] = useState<AccountDetails>()
  const [isAsking, setIsAsking] = useState(false)
  if (account === null) return <>None</>
  const numberOf = (details: AccountDetails) =>
    'iban' in details ? details.iban : `${details.sortCode} ${details.accountNumber}`
  return (
    <span class="account">
      <span>{account.accountHolder}</span>
      <code>{revealed === undefined ? `•••• ${numberOf(account).slice(-4)}` : numberOf(revealed)}</code>
      {may('payroll') && (
        <button
          type="button"
          class="text-button"
          onClick={() => (revealed === undefined ? setIsAsking(true) : setRevealed(undefined))}
        >
          {revealed === undefined ? 'Show' : 'Hide'}
        </button>
      )}
      <Drawer title="Show the account" isOpen={isAsking} onClose={() => setIsAsking(false)}>
        <Form
          submit="Show"
          onSubmit={async ({ reason }) => {
            const path = `/console/v1/members/${memberId}/account`
            const { accountDetails } = await send<{ accountDetails: AccountDetails }>('POST', path, {
              body: { reason },
            })
            setRevealed(accountDetails)
            setIsAsking(false)
          }}
        >
          {problemOf => (
            <Field
              label="Reason"
              name="reason"
              problem={problemOf('reason')}
              note="Recorded in the audit log with your name"
              isRequired
            />
          )}
        </Form>
      </Drawer>
    </span>
  )
}

const statementColumns: Column<MemberStatementLine>[] = [
  { title: 'When', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'What', cell: ({ reason }) => inWords(reason) },
  { title: 'Source', cell: ({ movementId }) => <Id id={movementId} />, isMinor: true },
  { title: 'Change', cell: ({ change }) => <Amount money={change.available} signed />, isFigure: true },
  { title: 'Available', cell: ({ balanceAfter }) => <Amount money={balanceAfter.available} />, isFigure: true },
]

/** How the balance came about, line by line, as of any day. */
function Statement({ memberId }: { memberId: MemberId }) {
  const filters = useFilters()
  const day = filters.get('asOf')
  // The whole of the day, in the reader's zone.
  const end = new Date(`${day}T23:59:59.999`)
  // The address may name no day, or one that no calendar has.
  const asOf = Number.isNaN(end.getTime()) ? {} : { asOf: end.toISOString() }
  const listed = useList(
    `member-statement ${memberId} ${day}`,
    () => api.members.listStatementLines(memberId, { ...asOf, take: 20 }),
    page => page.lines,
  )
  return (
    <Panel
      isFlush
      title="Statement"
      aside={
        <div class="actions">
          <DayFilter label="As of" name="asOf" />
          <ExportButton
            name={`statement-${memberId}`}
            columns={[
              ['created_at', (line: MemberStatementLine) => line.createdAt],
              ['reason', line => line.reason],
              ['movement_id', line => line.movementId],
              ['change', line => toDecimal(line.change.available)],
              ['available', line => toDecimal(line.balanceAfter.available)],
              ['currency', line => line.change.available.currency],
            ]}
            rows={() => api.members.listStatementLines(memberId, { ...asOf, take: 1_000 })}
          />
        </div>
      }
    >
      {listed.first !== undefined && listed.first.closing.owed.amount > 0 && (
        <p class="panel-note">
          Owes <Amount money={listed.first.closing.owed} />, which the next pay run repays first.
        </p>
      )}
      <Table
        label="Statement"
        columns={statementColumns}
        list={listed}
        keyOf={({ id }) => id}
        empty={<Empty title="No pay and no withdrawals yet" />}
      />
    </Panel>
  )
}

const withdrawalColumns: Column<WithdrawalWithStatus>[] = [
  { title: 'Requested', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'State', cell: ({ status }) => <State state={status} /> },
  { title: 'Withdrawal', cell: ({ id }) => <Id id={id} />, isMinor: true },
  { title: 'Paid out', cell: ({ netAmount }) => <Amount money={netAmount} />, isFigure: true },
]

function Withdrawals({ memberId }: { memberId: MemberId }) {
  const listed = useList(
    `member-withdrawals ${memberId}`,
    () => api.withdrawals.list({ memberId, statuses: withdrawalStatuses, take: 10 }),
    page => page.withdrawals,
  )
  return (
    <Panel isFlush title="Withdrawals">
      <Table
        label="Withdrawals"
        columns={withdrawalColumns}
        list={listed}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => hrefOfId(id)}
        empty={<Empty title="No withdrawals yet" />}
      />
    </Panel>
  )
}

const eventColumns: Column<Event>[] = [
  { title: 'When', cell: ({ timestamp }) => <Time at={timestamp} /> },
  { title: 'Event', cell: ({ type }) => <code>{type}</code> },
  { title: 'What', cell: ({ data }) => ('changed' in data ? data.changed.join(', ') : '') },
]

function Events({ memberId }: { memberId: MemberId }) {
  const { rows, error, reload } = useList(
    `member-events ${memberId}`,
    () => api.events.list({ resourceId: memberId, take: 100 }),
    page => page.events,
  )
  return (
    <Panel isFlush title="Events of the last 30 days">
      <Table
        label="Events"
        columns={eventColumns}
        list={{ rows, error, reload }}
        keyOf={({ id }) => id}
        empty={<Empty title="Nothing changed in the last 30 days" />}
      />
    </Panel>
  )
}
