import type { ComponentType } from 'preact'
import { lazy } from 'preact-iso'
import { partnerId } from './api.ts'
import { Page } from './components/layout.tsx'
import { Empty } from './components/states.tsx'
import Account from './pages/account.tsx'
import Cycle from './pages/cycle.tsx'
import Cycles from './pages/cycles.tsx'
import Events from './pages/events.tsx'
import Intent from './pages/intent.tsx'
import Keys from './pages/keys.tsx'
import List from './pages/list.tsx'
import Lists from './pages/lists.tsx'
import Member, { prefetchMember } from './pages/member.tsx'
import Members, { prefetchMembers } from './pages/members.tsx'
import Overview, { prefetchOverview } from './pages/overview.tsx'
import PayRun from './pages/pay-run.tsx'
import PayRuns from './pages/pay-runs.tsx'
import RequestPage from './pages/request.tsx'
import Requests from './pages/requests.tsx'
import Settings from './pages/settings.tsx'
import Users from './pages/users.tsx'
import Webhook from './pages/webhook.tsx'
import Webhooks from './pages/webhooks.tsx'
import Withdrawal, { prefetchWithdrawal } from './pages/withdrawal.tsx'
import Withdrawals, { prefetchWithdrawals } from './pages/withdrawals.tsx'
import { report } from './report.ts'
import { session } from './session.ts'

const OperatorPages = lazy<ComponentType>(() => import('./pages/operator/pages.tsx').catch(insteadOf))

/** The pages by address. Those of operators are one more file, which most readers do not need. */
export const routes: [string, ComponentType][] = [
  ['/console/account', Account],
  ['/console/:partner', Overview],
  ['/console/:partner/withdrawals', Withdrawals],
  ['/console/:partner/withdrawals/:id', Withdrawal],
  ['/console/:partner/intents/:id', Intent],
  ['/console/:partner/members', Members],
  ['/console/:partner/members/:id', Member],
  ['/console/:partner/lists', Lists],
  ['/console/:partner/lists/:id', List],
  ['/console/:partner/pay-runs', PayRuns],
  ['/console/:partner/pay-runs/:id', PayRun],
  ['/console/:partner/cycles', Cycles],
  ['/console/:partner/cycles/:id', Cycle],
  ['/console/:partner/keys', Keys],
  ['/console/:partner/webhooks', Webhooks],
  ['/console/:partner/webhooks/:id', Webhook],
  ['/console/:partner/requests', Requests],
  ['/console/:partner/requests/:id', RequestPage],
  ['/console/:partner/events', Events],
  ['/console/:partner/users', Users],
  ['/console/:partner/settings', Settings],
  ['/console/operator/*', OperatorPages],
]

/** What is asked for while the reader is about to open a page. It gets what the address ends with. */
const ahead: [RegExp, (id: string) => void][] = [
  [/^\/console\/par_\w+$/, prefetchOverview],
  [/^\/console\/par_\w+\/withdrawals$/, prefetchWithdrawals],
  [/^\/console\/par_\w+\/withdrawals\/(w_\w+)$/, prefetchWithdrawal],
  [/^\/console\/par_\w+\/members$/, prefetchMembers],
  [/^\/console\/par_\w+\/members\/(mem_\w+)$/, prefetchMember],
]

// Resting, not passing by.
const restMs = 60

/** Asks ahead for the page of the link or row that the pointer rests on, or that has the focus. */
export function prefetchPointedAt(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const point = ({ target }: Event) => {
    clearTimeout(timer)
    const pointed = target instanceof Element ? target.closest('a[href^="/console/par_"], tr[data-href]') : null
    const address = pointed?.getAttribute('href') ?? pointed?.getAttribute('data-href')
    if (!address?.startsWith(`/console/${partnerId.peek()}`)) return
    timer = setTimeout(() => prefetchPage(address), restMs)
  }
  for (const name of ['pointerover', 'focusin']) addEventListener(name, point)
  return () => {
    for (const name of ['pointerover', 'focusin']) removeEventListener(name, point)
  }
}

/** Asks for what the page of the browser's address will show, before it is drawn. */
export function prefetchOpened(): void {
  const named = /^\/console\/(par_\w+)/.exec(location.pathname)?.[1]
  const isOwn = session.value?.partners.some(({ id }) => id === named)
  // A list with filters is another one.
  if (named === undefined || !isOwn || location.search !== '') return
  partnerId.value = named
  prefetchPage(location.pathname)
}

function prefetchPage(address: string): void {
  for (const [pattern, prefetch] of ahead) {
    const found = pattern.exec(address)
    if (found !== null) prefetch(found[1] ?? '')
  }
}

export function preloadOperatorPages(): void {
  void OperatorPages.preload()
}

/** Stands for a page whose files cannot be loaded: there is no connection, or a newer version has other ones. */
function insteadOf(error: unknown): { default: ComponentType } {
  report(error)
  return {
    default: () => (
      <Page title="Not loaded">
        <Empty title="This page could not be loaded">
          There is no connection to the service, or it runs a newer version of the console.{' '}
          <button type="button" class="button" onClick={() => location.reload()}>
            Reload the page
          </button>
        </Empty>
      </Page>
    ),
  }
}
