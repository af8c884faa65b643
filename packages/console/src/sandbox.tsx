import type { SandboxBankFault, SandboxClock, SandboxScenario } from '@openwage/sdk'
import { signal } from '@preact/signals'
import { api } from './api.ts'
import { act } from './components/act.ts'
import { Icon } from './components/icon.tsx'
import { Drawer, KeyValues } from './components/layout.tsx'
import { Time } from './components/values.tsx'
import { inWords, plural } from './format.ts'
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
  ['Next payout', { next: 'withdrawal_submission' }],
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

const scenarios: [SandboxScenario, string][] = [
  ['fresh', 'A fresh start'],
  ['mid_cycle', 'In the middle of a cycle'],
  ['after_payroll', 'After payroll'],
  ['returned_payments', 'Returned payments'],
  ['ten_thousand_members', 'Ten thousand members'],
]

function SandboxDrawer() {
  return (
    <Drawer
      title="Sandbox"
      isOpen={sandboxIsOpen.value}
      onClose={() => {
        sandboxIsOpen.value = false
      }}
    >
      <Clock />
      {may('developer') && (
        <>
          <section class="stack-s">
            <h3>The next payment meets a fault</h3>
            <div class="button-list">
              {faults.map(([fault, title]) => (
                <button
                  key={fault}
                  type="button"
                  class="button"
                  onClick={() =>
                    void act(
                      () => api.sandbox.bank.addFault({ next: fault, count: 1 }),
                      ({ faults: waiting }) =>
                        `${plural(
                          waiting.reduce((sum, each) => sum + each.remaining, 0),
                          'payment',
                        )} will meet a fault`,
                    )
                  }
                >
                  {title}
                </button>
              ))}
            </div>
          </section>
          <section class="stack-s">
            <h3>Add demo data</h3>
            <div class="button-list">
              {scenarios.map(([scenario, title]) => (
                <button
                  key={scenario}
                  type="button"
                  class="button"
                  onClick={() =>
                    void act(
                      () => api.sandbox.seed({ scenario }),
                      ({ members }) => `${title}: ${plural(members, 'member')}`,
                      '',
                    )
                  }
                >
                  {title}
                </button>
              ))}
            </div>
          </section>
          <section class="stack-s">
            <h3>On-demand pay</h3>
            <div class="button-list">
              <button
                type="button"
                class="button"
                onClick={() => void act(() => api.sandbox.pause(), 'Paused: intents are refused', '')}
              >
                Pause
              </button>
              <button type="button" class="button" onClick={() => void act(() => api.sandbox.resume(), 'Resumed', '')}>
                Resume
              </button>
            </div>
          </section>
        </>
      )}
    </Drawer>
  )
}

function Clock() {
  const { value } = useLoaded('sandbox-clock', () => api.sandbox.clock.get())
  const move = async (body: (typeof moves)[number][1]) => {
    await act(() => api.sandbox.clock.move(body), describeMove)
    reload('')
  }
  return (
    <section class="stack-s">
      <h3>Clock</h3>
      <KeyValues entries={[['Time here', <Time key="now" at={value?.now} />]]} />
      {may('developer') && (
        <div class="button-list">
          {moves.map(([title, body]) => (
            <button key={title} type="button" class="button" onClick={() => void move(body)}>
              {title}
            </button>
          ))}
        </div>
      )}
      {value?.lastMove && (
        <ul class="lines">
          {value.lastMove.ran.map(({ due, from, count }) => (
            <li key={`${due} ${from}`}>
              <span>{inWords(due)}</span>
              <span class="quiet">
                {count > 1 && `${count} times, `}
                <Time at={from} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

function describeMove({ lastMove }: SandboxClock): string {
  const count = lastMove?.ran.reduce((sum, each) => sum + each.count, 0) ?? 0
  return count === 0 ? 'Moved; nothing fell due' : `Moved; ${plural(count, 'thing')} fell due`
}
