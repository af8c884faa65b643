import type { ComponentChildren } from 'preact'
import { act } from '../../act.ts'
import { ActButton } from '../../components/act-button.tsx'
import { KeyValues, Panel } from '../../components/layout.tsx'
import { Person } from '../../components/person.tsx'
import { Empty } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Id, Time } from '../../components/values.tsx'
import { inWords } from '../../format.ts'
import type { PayoutProposal, ProposedDecision } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { useList } from '../../query.ts'
import { session } from '../../session.ts'

type Proposed = Pick<PayoutProposal, 'subject' | 'decision' | 'note' | 'person' | 'proposedAt'>
const changes = ['operator-exception', 'operator-proposals', 'operator-batch', 'withdrawal']

/** What is proposed, in words: the decision or the outcome, and its fields. */
function decisionIn(decision: string): { name: string; others: string } {
  const { decision: chosen, outcome, ...others } = JSON.parse(decision) as Record<string, unknown>
  return { name: inWords(String(chosen ?? outcome)), others: JSON.stringify(others) }
}

/** Confirms or withdraws a proposal. Who has proposed it cannot confirm it. */
function Buttons({ proposal: { subject, person } }: { proposal: Proposed }) {
  return (
    <div class="button-group">
      {person !== session.value?.user.id && (
        <ActButton
          look="button button-main"
          act={() => act(() => operators.confirmPayoutProposal(subject), 'Confirmed', ...changes)}
        >
          Confirm
        </ActButton>
      )}
      <ActButton act={() => act(() => operators.withdrawPayoutProposal(subject), 'Withdrawn', ...changes)}>
        Withdraw
      </ActButton>
    </div>
  )
}

const columns: Column<PayoutProposal>[] = [
  {
    title: 'About',
    cell: ({ exceptionId, reference, partnerId, withdrawalId }) =>
      exceptionId === null ? (
        <Id id={reference ?? ''} isWhole href={`/console/${partnerId}/withdrawals/${withdrawalId}`} />
      ) : (
        <Id id={exceptionId} />
      ),
  },
  { title: 'Decision', cell: ({ decision }) => decisionIn(decision).name },
  { title: 'Why', cell: ({ note }) => note, isMinor: true },
  { title: 'Proposed by', cell: ({ person }) => <Person who={person} /> },
  { title: 'When', cell: ({ proposedAt }) => <Time at={proposedAt} />, isMinor: true },
  { title: 'Action', cell: proposal => <Buttons proposal={proposal} />, isFigure: true },
]

/** The decisions about exceptions and payments that one person has made and that take two. */
export function WaitingProposals() {
  const listed = useList(
    'operator-proposals',
    () => operators.listPayoutProposals({ take: 50 }),
    page => page.proposals,
  )
  if (listed.rows === undefined || listed.rows.length === 0) return null
  return (
    <Panel isFlush title="Waiting for a second person">
      <Table
        label="Waiting for a second person"
        columns={columns}
        list={listed}
        keyOf={({ subject }) => subject}
        empty={<Empty title="Nothing waits" />}
      />
    </Panel>
  )
}

/** A decision about the subject of the page, which waits for a second person. */
export function Proposed({ subject, proposal }: { subject: string; proposal: NonNullable<ProposedDecision> }) {
  const { name, others } = decisionIn(proposal.decision)
  const entries: [string, ComponentChildren][] = [
    ['Decision', name],
    ['With', others === '{}' ? '–' : others],
    ['Why', proposal.note],
    ['Proposed by', <Person key="by" who={proposal.person} />],
    ['When', <Time key="at" at={proposal.proposedAt} />],
  ]
  return (
    <Panel title="Waiting for a second person">
      <KeyValues entries={entries} />
      <p>It takes two people. Another person confirms it here, or anyone withdraws it.</p>
      <Buttons proposal={{ subject, ...proposal }} />
    </Panel>
  )
}
