import type { SandboxBankFault, SandboxClock, SandboxScenario } from '@midmonth/sdk'
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { act, actUnlessUndone } from './act.ts'
import { api } from './api.ts'
import { Button, ChoiceButton } from './components/button.tsx'
import { Icon } from './components/icon.tsx'
import { Drawer, KeyValues } from './components/layout.tsx'
import { usePolling } from './components/polling.ts'
import { Time } from './components/values.tsx'
import { formatNumber, inWords, plural } from './format.ts'
import { reload, useLoaded } from './query.ts'
import { may } from './session.ts'

const sandboxIsOpen = signal(false)

/** Says on every page that no real money moves, and shows the sandbox time. Opens the drawer. */
export function SandboxBand() {
  const { value } = useLoaded('sandbox-clock', () => api.sandbox.clock.get())
  return (
    <section aria-label="Sandbox">
      <button
        type="button"
        class="band row"
        onClick={() => {
          sandboxIsOpen.value = true
        }}
      >
        <Icon name="sandbox" />
        <span>
          Sandbox<span class="band-more">: no real money moves</span>
          {value !== undefined && value.aheadSeconds > 0 && (
            <>
              . Here it is <Time at={value.now} />
            </>
          )}
        </span>
        <span class="band-end">Clock and bank</span>
      </button>
      <SandboxDrawer />
    </section>
  )
}

const moves: [string, Parameters<typeof api.sandbox.clock.move>[0]][] = [
  ['1 hour', { by: 'PT1H' }],
  ['1 day', { by: 'P1D' }],
  ['1 week', { by: 'P1W' }],
  ['Next payout', { next: 'withdrawal_submission' }],
  ['Next bank report', { next: 'bank_report' }],
  ['Cycle close', { next: 'cycle_close' }],
]

const faults: [SandboxBankFault, string][] = [
  ['timeout', 'The bank does not answer'],
  ['error', 'The bank answers with an error'],
  ['duplicate', 'The bank reports twice'],
  ['late', 'The bank reports late'],
  ['contradiction', 'The bank contradicts itself'],
  ['unknown_reference', 'The bank names an unknown payment'],
]

const scenarios: [SandboxScenario, string, string][] = [
  ['fresh', 'A fresh start', 'tiers and a funded float, no members'],
  ['mid_cycle', 'In the middle of a cycle', '25 members with pay and withdrawals'],
  ['after_payroll', 'After payroll', 'the previous cycle is closed and settled'],
  ['returned_payments', 'Returned payments', 'withdrawals that failed or were returned'],
  ['ten_thousand_members', 'Ten thousand members', 'with pay, without withdrawals'],
]

function close(): void {
  sandboxIsOpen.value = false
}

function SandboxDrawer() {
  return (
    <Drawer title="Sandbox" isOpen={sandboxIsOpen.value} onClose={close}>
      <Clock />
      {may('developer') && (
        <>
          <section class="stack stack-s">
            <h3>Fault for the next payment</h3>
            <div class="button-list">
              {faults.map(([fault, title]) => (
                <Button key={fault} act={() => addFault(fault)}>
                  {title}
                </Button>
              ))}
            </div>
          </section>
          <section class="stack stack-s">
            <h3>On-demand pay</h3>
            <div class="button-list">
              <Button act={() => act(() => api.sandbox.pause(), 'Paused; new intents are rejected', '')}>Pause</Button>
              <Button act={() => act(() => api.sandbox.resume(), 'Resumed', '')}>Resume</Button>
            </div>
          </section>
          <section class="stack stack-s">
            <h3>Start over</h3>
            <p class="quiet">
              Replaces every member, payment and ledger entry of this partner. Settings, tiers, API keys and webhooks
              stay.
            </p>
            <ul class="choices">
              {scenarios.map(([scenario, title, meaning]) => (
                <li key={scenario}>
                  <ChoiceButton act={() => startOver(scenario, title)}>
                    <b>{title}</b>
                    <span class="quiet">{meaning}</span>
                  </ChoiceButton>
                </li>
              ))}
            </ul>
          </section>
        </>
      )}
    </Drawer>
  )
}

async function addFault(fault: SandboxBankFault): Promise<void> {
  await act(
    () => api.sandbox.bank.addFault({ next: fault, count: 1 }),
    ({ faults: waiting }) => {
      const count = waiting.reduce((sum, each) => sum + each.remaining, 0)
      return `Faults set for ${plural(count, 'payment')}`
    },
  )
}

/** Replaces all data of the partner, after as long a delay to undo it as for a cancellation. */
function startOver(scenario: SandboxScenario, title: string): void {
  close()
  actUnlessUndone(`All data of this partner is replaced: ${title}.`, () => api.sandbox.seed({ scenario }), {
    done: ({ members }) => `${title}: ${plural(members, 'member')}`,
    changes: [''],
  })
}

function Clock() {
  const clock = useLoaded('sandbox-clock', () => api.sandbox.clock.get())
  const { value } = clock
  const isMoving = value?.status === 'Moving'
  // A move may continue after the response.
  usePolling(isMoving, clock)
  useEffect(() => (isMoving ? () => reload('') : undefined), [isMoving])
  const move = (body: (typeof moves)[number][1]) => act(() => api.sandbox.clock.move(body), describeMove, '')
  const ran = isMoving ? [] : (value?.lastMove?.ran ?? [])
  return (
    <section class="stack stack-s">
      <h3>Clock</h3>
      <KeyValues
        entries={[
          ['Sandbox time', isMoving ? 'Moving…' : <Time key="now" at={value?.now} />],
          ['Ahead of real time', describeAhead(value?.aheadSeconds ?? 0)],
        ]}
      />
      {may('developer') && (
        <div class="button-list">
          {moves.map(([title, body]) => (
            <Button key={title} act={() => move(body)}>
              {title}
            </Button>
          ))}
        </div>
      )}
      {ran.length > 0 && (
        <>
          <h4>Due during the last move</h4>
          <ul class="lines">
            {ran.map(({ due, from, count }) => (
              <li key={`${due} ${from}`}>
                <span>{inWords(due)}</span>
                <span class="quiet">
                  {count > 1 && `${formatNumber(count)} times, `}
                  <Time at={from} />
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  )
}

function describeAhead(seconds: number): string {
  if (seconds < 7_200) return plural(Math.round(seconds / 60), 'minute')
  if (seconds < 172_800) return plural(Math.round(seconds / 3_600), 'hour')
  return plural(Math.round(seconds / 86_400), 'day')
}

function describeMove({ status, lastMove }: SandboxClock): string {
  if (status === 'Moving') return 'The clock is moving; this takes a while'
  const count = lastMove?.ran.reduce((sum, each) => sum + each.count, 0) ?? 0
  return count === 0 ? 'Clock moved; nothing was due' : `Clock moved; ${plural(count, 'event')} came due`
}
