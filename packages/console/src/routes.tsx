import type { ComponentType } from 'preact'
import { lazy } from 'preact-iso'
import { partnerId } from './api.ts'
import { Button } from './components/button.tsx'
import { Page } from './components/layout.tsx'
import { Empty } from './components/states.tsx'
import Account from './pages/account.tsx'
import Cycle from './pages/cycle.tsx'
import Cycles from './pages/cycles.tsx'
import Events from './pages/events.tsx'
import Intent from './pages/intent.tsx'
import Keys from './pages/keys.tsx'
import Member, { prefetchMember } from './pages/member.tsx'
import MemberImport from './pages/member-import.tsx'
import MemberImports from './pages/member-imports.tsx'
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

const OperatorPages = lazy<ComponentType>(() => import('./pages/operator/pages.tsx').catch(loadFailurePage))

/** The pages by address. The operators' pages are a separate file, which most readers do not need. */
export const routes: [string, ComponentType][] = [
  ['/console/account', Account],
  ['/console/:partner', Overview],
  ['/console/:partner/withdrawals', Withdrawals],
  ['/console/:partner/withdrawals/:id', Withdrawal],
  ['/console/:partner/intents/:id', Intent],
  ['/console/:partner/members', Members],
  ['/console/:partner/members/:id', Member],
  ['/console/:partner/lists', MemberImports],
  ['/console/:partner/lists/:id', MemberImport],
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

/** Requests to send when the reader is about to open a page. Each receives the end of the address. */
const ahead: [RegExp, (id: string) => void][] = [
  [/^\/console\/par_\w+$/, prefetchOverview],
  [/^\/console\/par_\w+\/withdrawals$/, prefetchWithdrawals],
  [/^\/console\/par_\w+\/withdrawals\/(w_\w+)$/, prefetchWithdrawal],
  [/^\/console\/par_\w+\/members$/, prefetchMembers],
  [/^\/console\/par_\w+\/members\/(mem_\w+)$/, prefetchMember],
]

// Long enough to tell a resting pointer from a passing one.
const restMs = 60

/** Prefetches the page of the link or row that the pointer rests on or that has the focus. */
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

/** Prefetches the page at the browser's address before it renders. */
export function prefetchOpened(): void {
  const named = /^\/console\/(par_\w+)/.exec(location.pathname)?.[1]
  const isOwn = session.value?.partners.some(({ id }) => id === named)
  // A filtered list has a different key.
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

/** Replaces a page whose files cannot be loaded, because there is no connection or a newer version has different files. */
function loadFailurePage(error: unknown): { default: ComponentType } {
  report(error)
  return {
    default: () => (
      <Page title="Not loaded">
        <Empty title="This page could not be loaded">
          There is no connection to the service, or the console has been updated.{' '}
          <Button act={() => location.reload()}>Reload the page</Button>
        </Empty>
      </Page>
    ),
  }
}
