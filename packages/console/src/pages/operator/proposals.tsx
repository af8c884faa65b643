import type { ComponentChildren } from 'preact'
import { act } from '../../act.ts'
import { Button, MainButton } from '../../components/button.tsx'
import { KeyValues, Panel } from '../../components/layout.tsx'
import { Person } from '../../components/person.tsx'
import { type Column, TablePanel } from '../../components/table.tsx'
import { Id, Time } from '../../components/values.tsx'
import { inWords } from '../../format.ts'
import type { PayoutProposal, ProposedDecision } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { useList } from '../../query.ts'
import { session } from '../../session.ts'

type Proposed = Pick<PayoutProposal, 'subject' | 'decision' | 'note' | 'person' | 'proposedAt'>
const reloadPrefixes = ['operator-exception', 'operator-proposals', 'operator-batch', 'withdrawal']

/** Formats a proposal: the decision or outcome, and its fields. */
function decisionIn(decision: string): { name: string; others: string } {
  const { decision: chosen, outcome, ...others } = JSON.parse(decision) as Record<string, unknown>
  return { name: inWords(String(chosen ?? outcome)), others: JSON.stringify(others) }
}

/** Confirms or withdraws a proposal. The proposer cannot confirm it. */
function Buttons({ proposal: { subject, person } }: { proposal: Proposed }) {
  return (
    <div class="button-group">
      {person !== session.value?.user.id && (
        <MainButton act={() => act(() => operators.confirmPayoutProposal(subject), 'Confirmed', ...reloadPrefixes)}>
          Confirm
        </MainButton>
      )}
      <Button act={() => act(() => operators.withdrawPayoutProposal(subject), 'Withdrawn', ...reloadPrefixes)}>
        Withdraw
      </Button>
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
  { title: 'Reason', cell: ({ note }) => note, isMinor: true },
  { title: 'Proposed by', cell: ({ person }) => <Person who={person} /> },
  { title: 'When', cell: ({ proposedAt }) => <Time at={proposedAt} />, isMinor: true },
  { title: 'Action', cell: proposal => <Buttons proposal={proposal} />, isFigure: true },
]

/** Lists decisions about exceptions and payments that await a second person. */
export function WaitingProposals() {
  const listed = useList('operator-proposals', () => operators.listPayoutProposals({ take: 50 }))
  if (listed.rows === undefined || listed.rows.length === 0) return null
  return (
    <TablePanel title="Waiting for a second person" columns={columns} list={listed} keyOf={({ subject }) => subject} />
  )
}

/** Shows a proposed decision about the page's subject that awaits a second person. */
export function Proposed({ subject, proposal }: { subject: string; proposal: NonNullable<ProposedDecision> }) {
  const { name, others } = decisionIn(proposal.decision)
  const entries: [string, ComponentChildren][] = [
    ['Decision', name],
    ['Fields', others === '{}' ? '–' : others],
    ['Reason', proposal.note],
    ['Proposed by', <Person key="by" who={proposal.person} />],
    ['When', <Time key="at" at={proposal.proposedAt} />],
  ]
  return (
    <Panel title="Waiting for a second person">
      <KeyValues entries={entries} />
      <p>This decision takes two people. Another person can confirm it here. Anyone can withdraw it.</p>
      <Buttons proposal={{ subject, ...proposal }} />
    </Panel>
  )
}
