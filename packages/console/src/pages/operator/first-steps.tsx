import type { ComponentChildren } from 'preact'
import { Panel } from '../../components/layout.tsx'
import type { Partner } from '../../generated/operator.ts'

type Step = { title: ComponentChildren; note: string; isDone: boolean }

function Steps({ steps }: { steps: Step[] }) {
  return (
    <ol class="steps">
      {steps.map(({ title, note, isDone }) => (
        <li key={note} class={isDone ? 'step-done' : undefined}>
          <div>
            {title}
            {isDone && <span class="hidden-label"> (done)</span>}
            {!isDone && <span class="quiet">{note}</span>}
          </div>
        </li>
      ))}
    </ol>
  )
}

/** Shown instead of the list while an installation has no partners. */
export function FirstSteps({ isLive }: { isLive: boolean }) {
  const steps: Step[] = [
    ...(isLive
      ? [
          {
            title: (
              <>
                Check on <a href="/console/operator/health">Health</a> what the installation still needs
              </>
            ),
            note: 'A connected bank, a worker, backups. Each finding says what to do.',
            isDone: false,
          },
          {
            title: <a href="/console/operator/operators">Invite a second operator</a>,
            note: 'Approving a payout batch takes two people.',
            isDone: false,
          },
        ]
      : []),
    {
      title: (
        <a href="/console/operator/new-partner">
          <b>Create a partner</b>
        </a>
      ),
      note: 'An employer, a gig platform or a payroll bureau, with its time zone and pay cycles.',
      isDone: false,
    },
    { title: 'Give it a tier', note: 'How much its members may withdraw, and for which fee.', isDone: false },
    { title: 'Fund its float', note: 'The money that pays its members’ withdrawals.', isDone: false },
    { title: 'Create an API key', note: 'The partner’s server sends the key with every request.', isDone: false },
  ]
  return (
    <div class="narrow">
      <Panel title="No partners yet">
        <Steps steps={steps} />
      </Panel>
    </div>
  )
}

/** The steps that remain before the partner's members can withdraw. Renders nothing once all are done. */
export function NextSteps({ partner: { id, floats, keys, members } }: { partner: Partner }) {
  const steps: Step[] = [
    {
      title: <a href="#tiers">Create a tier</a>,
      note: 'How much members may withdraw, and for which fee.',
      // The first tier in a currency creates the float.
      isDone: floats.length > 0,
    },
    {
      title: <a href="#float">Fund the float</a>,
      note: 'The float pays withdrawals.',
      isDone: floats.some(({ float }) => float.amount > 0),
    },
    {
      title: <a href="#keys">Create an API key</a>,
      note: 'For the partner’s server. The secret is shown once.',
      isDone: keys.valid > 0,
    },
    {
      title: (
        <>
          Add members: <a href={`/console/${id}/lists`}>import</a> them, or <a href={`/console/${id}/users`}>invite</a>{' '}
          the partner’s users to do so
        </>
      ),
      note: 'Payroll, support and developers each see the pages for their role.',
      isDone: members.active + members.invited + members.inactive > 0,
    },
  ]
  if (steps.every(({ isDone }) => isDone)) return null
  return (
    <div class="below-s">
      <Panel title="Next steps">
        <Steps steps={steps} />
      </Panel>
    </div>
  )
}
