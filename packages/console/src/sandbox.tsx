import type { SandboxBankFault, SandboxClock, SandboxScenario } from '@openwage/sdk'
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { api } from './api.ts'
import { act } from './components/act.ts'
import { Icon } from './components/icon.tsx'
import { Drawer, KeyValues } from './components/layout.tsx'
import { doUnlessUndone } from './components/toast.tsx'
import { Time } from './components/values.tsx'
import { formatNumber, inWords, plural } from './format.ts'
import { reload, useLoaded } from './query.ts'
import { may } from './session.ts'

const sandboxIsOpen = signal(false)

/** Says on every page that this is no real money, and what time it is in the sandbox. Opens the drawer. */
export function SandboxBand() {
  const { value } = useLoaded('sandbox-clock', () => api.sandbox.clock.get())
  return (
    <section aria-label="Sandbox">
      <button
        type="button"
        class="band"
        onClick={() => {
          sandboxIsOpen.value = true
        }}
      >
        <Icon name="sandbox" />
        <span class="band-text">
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
  ['Next answer of the bank', { next: 'bank_report' }],
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
          <section class="stack-s">
            <h3>The next payment meets a fault</h3>
            <div class="button-list">
              {faults.map(([fault, title]) => (
                <Doing key={fault} act={() => addFault(fault)}>
                  {title}
                </Doing>
              ))}
            </div>
          </section>
          <section class="stack-s">
            <h3>On-demand pay</h3>
            <div class="button-list">
              <Doing act={() => act(() => api.sandbox.pause(), 'Paused: intents are refused', '')}>Pause</Doing>
              <Doing act={() => act(() => api.sandbox.resume(), 'Resumed', '')}>Resume</Doing>
            </div>
          </section>
          <section class="stack-s">
            <h3>Start over</h3>
            <p class="quiet">
              Replaces every member, payment and booking of this partner. Settings, tiers, API keys and webhooks stay.
            </p>
            <ul class="choices">
              {scenarios.map(([scenario, title, meaning]) => (
                <li key={scenario}>
                  <button type="button" class="choice" onClick={() => startOver(scenario, title)}>
                    <b>{title}</b>
                    <span class="quiet">{meaning}</span>
                  </button>
                </li>
              ))}
            </ul>
          </section>
        </>
      )}
    </Drawer>
  )
}

/** A button that cannot be pressed again until what it does is done. */
function Doing({ act: doing, children }: { act: () => Promise<unknown>; children: ComponentChildren }) {
  const [isBusy, setIsBusy] = useState(false)
  return (
    <button
      type="button"
      class="button"
      disabled={isBusy}
      onClick={async () => {
        setIsBusy(true)
        await doing()
        setIsBusy(false)
      }}
    >
      {children}
    </button>
  )
}

async function addFault(fault: SandboxBankFault): Promise<void> {
  await act(
    () => api.sandbox.bank.addFault({ next: fault, count: 1 }),
    ({ faults: waiting }) => {
      const count = waiting.reduce((sum, each) => sum + each.remaining, 0)
      return `${plural(count, 'payment')} will meet a fault`
    },
  )
}

/** Everything of the partner is lost, so it can be undone for as long as a cancellation can. */
function startOver(scenario: SandboxScenario, title: string): void {
  close()
  doUnlessUndone(
    `Everything of this partner is replaced: ${title}.`,
    () =>
      void act(
        () => api.sandbox.seed({ scenario }),
        ({ members }) => `${title}: ${plural(members, 'member')}`,
        '',
      ),
    () => undefined,
  )
}

// Often enough for a move that goes on after its answer.
const moveMs = 1_000

function Clock() {
  const { value, reload: look } = useLoaded('sandbox-clock', () => api.sandbox.clock.get())
  const isMoving = value?.status === 'Moving'
  useEffect(() => {
    if (!isMoving) return
    const timer = setInterval(look, moveMs)
    return () => {
      clearInterval(timer)
      reload('')
    }
  }, [isMoving])
  const move = (body: (typeof moves)[number][1]) => act(() => api.sandbox.clock.move(body), describeMove, '')
  const ran = isMoving ? [] : (value?.lastMove?.ran ?? [])
  return (
    <section class="stack-s">
      <h3>Clock</h3>
      <KeyValues
        entries={[
          ['Time here', isMoving ? 'Moving…' : <Time key="now" at={value?.now} />],
          ['Ahead of real time', describeAhead(value?.aheadSeconds ?? 0)],
        ]}
      />
      {may('developer') && (
        <div class="button-list">
          {moves.map(([title, body]) => (
            <Doing key={title} act={() => move(body)}>
              {title}
            </Doing>
          ))}
        </div>
      )}
      {ran.length > 0 && (
        <>
          <h4>What fell due in the last move</h4>
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
  if (seconds === 0) return 'No'
  if (seconds < 7_200) return plural(Math.round(seconds / 60), 'minute')
  if (seconds < 172_800) return plural(Math.round(seconds / 3_600), 'hour')
  return plural(Math.round(seconds / 86_400), 'day')
}

function describeMove({ status, lastMove }: SandboxClock): string {
  if (status === 'Moving') return 'The clock is moving; it takes a while'
  const count = lastMove?.ran.reduce((sum, each) => sum + each.count, 0) ?? 0
  return count === 0 ? 'Moved; nothing fell due' : `Moved; ${plural(count, 'thing')} fell due`
}
