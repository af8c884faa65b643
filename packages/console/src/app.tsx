import { useEffect } from 'preact/hooks'
import { ErrorBoundary, LocationProvider, lazy, Route, Router, useLocation } from 'preact-iso'
import { partnerId, sessionEnded } from './api.ts'
import { Page } from './components/layout.tsx'
import { Empty, Skeleton } from './components/states.tsx'
import { Toasts } from './components/toast.tsx'
import { ByLink, linkPages } from './pages/by-link.tsx'
import { SignIn } from './pages/sign-in.tsx'
import { loadSession, session } from './session.ts'
import { Shell } from './shell.tsx'

const Overview = lazy(() => import('./pages/overview.tsx'))
const Withdrawals = lazy(() => import('./pages/withdrawals.tsx'))
const Withdrawal = lazy(() => import('./pages/withdrawal.tsx'))
const Intent = lazy(() => import('./pages/intent.tsx'))
const Members = lazy(() => import('./pages/members.tsx'))
const Member = lazy(() => import('./pages/member.tsx'))
const Lists = lazy(() => import('./pages/lists.tsx'))
const List = lazy(() => import('./pages/list.tsx'))
const PayRuns = lazy(() => import('./pages/pay-runs.tsx'))
const PayRun = lazy(() => import('./pages/pay-run.tsx'))
const Cycles = lazy(() => import('./pages/cycles.tsx'))
const Cycle = lazy(() => import('./pages/cycle.tsx'))
const Webhooks = lazy(() => import('./pages/webhooks.tsx'))
const Webhook = lazy(() => import('./pages/webhook.tsx'))
const Requests = lazy(() => import('./pages/requests.tsx'))
const Request = lazy(() => import('./pages/request.tsx'))
const Events = lazy(() => import('./pages/events.tsx'))

const OperatorPartners = lazy(() => import('./pages/operator/partners.tsx'))
const OperatorPartner = lazy(() => import('./pages/operator/partner.tsx'))
const NewPartner = lazy(() => import('./pages/operator/new-partner.tsx'))
const Rails = lazy(() => import('./pages/operator/rails.tsx'))
const Account = lazy(() => import('./pages/account.tsx'))
const Users = lazy(() => import('./pages/users.tsx'))
const Float = lazy(() => import('./pages/operator/float.tsx'))
const Health = lazy(() => import('./pages/operator/health.tsx'))
const AuditLog = lazy(() => import('./pages/operator/audit-log.tsx'))
const Batches = lazy(() => import('./pages/operator/batches.tsx'))
const Batch = lazy(() => import('./pages/operator/batch.tsx'))
const Exceptions = lazy(() => import('./pages/operator/exceptions.tsx'))
const Exception = lazy(() => import('./pages/operator/exception.tsx'))

export function App() {
  return (
    <LocationProvider scope="/console">
      <Gate />
      <Toasts />
    </LocationProvider>
  )
}

/** Shows the pages to a reader who is signed in, and the sign-in page to another one. */
function Gate() {
  useEffect(() => void loadSession(), [])
  const { path } = useLocation()
  const ofLink = linkPages.find(page => path === `/console/${page}`)
  if (ofLink !== undefined) return <ByLink page={ofLink} />
  if (session.value === undefined) return <Skeleton lines={4} />
  if (session.value === null || sessionEnded.value || path.startsWith('/console/sign-in')) return <SignIn />
  return <Pages />
}

function Pages() {
  const { path, route } = useLocation()
  const named = /^\/console\/(par_[0-9a-z]+)(?:\/|$)/.exec(path)?.[1]
  const first = session.value?.partners[0]?.id
  const isOfOperator = path.startsWith('/console/operator/')
  const isAtStart = path === '/console' || path === '/console/'
  // An operator of an installation without partners begins by creating one.
  const start =
    first !== undefined ? `/console/${first}` : session.value?.isOperator ? '/console/operator/partners' : undefined
  useEffect(() => {
    if (isAtStart && start !== undefined) route(start, true)
  }, [isAtStart, start, route])
  // Before the pages are drawn: their requests name the partner.
  if (named !== undefined && partnerId.peek() !== named) partnerId.value = named
  if (isAtStart && start !== undefined) return null
  const isUnknown = !session.value?.partners.some(({ id }) => id === partnerId.peek())
  if (isUnknown && partnerId.peek() !== first) partnerId.value = first
  return (
    <Shell>
      <ErrorBoundary>
        {(named !== undefined && partnerId.value !== named) || (isOfOperator && !session.value?.isOperator) ? (
          <NotFound />
        ) : (
          <Router>
            <Route path="/console/account" component={Account} />
            <Route path="/console/:partner" component={Overview} />
            <Route path="/console/:partner/withdrawals" component={Withdrawals} />
            <Route path="/console/:partner/withdrawals/:id" component={Withdrawal} />
            <Route path="/console/:partner/intents/:id" component={Intent} />
            <Route path="/console/:partner/members" component={Members} />
            <Route path="/console/:partner/members/:id" component={Member} />
            <Route path="/console/:partner/lists" component={Lists} />
            <Route path="/console/:partner/lists/:id" component={List} />
            <Route path="/console/:partner/pay-runs" component={PayRuns} />
            <Route path="/console/:partner/pay-runs/:id" component={PayRun} />
            <Route path="/console/:partner/cycles" component={Cycles} />
            <Route path="/console/:partner/cycles/:id" component={Cycle} />
            <Route path="/console/:partner/webhooks" component={Webhooks} />
            <Route path="/console/:partner/webhooks/:id" component={Webhook} />
            <Route path="/console/:partner/requests" component={Requests} />
            <Route path="/console/:partner/requests/:id" component={Request} />
            <Route path="/console/:partner/events" component={Events} />
            <Route path="/console/operator/new-partner" component={NewPartner} />
            <Route path="/console/operator/rails" component={Rails} />
            <Route path="/console/operator/partners" component={OperatorPartners} />
            <Route path="/console/operator/partners/:id" component={OperatorPartner} />
            <Route path="/console/operator/batches" component={Batches} />
            <Route path="/console/operator/batches/:id" component={Batch} />
            <Route path="/console/operator/float" component={Float} />
            <Route path="/console/operator/health" component={Health} />
            <Route path="/console/operator/audit-log" component={AuditLog} />
            <Route path="/console/operator/exceptions" component={Exceptions} />
            <Route path="/console/operator/exceptions/:id" component={Exception} />
            <Route path="/console/:partner/users" component={Users} />
            <Route default component={NotFound} />
          </Router>
        )}
      </ErrorBoundary>
    </Shell>
  )
}

function NotFound() {
  return (
    <Page title="Not found">
      <Empty title="There is no such page">
        The address is incomplete, or what it names belongs to another partner.
      </Empty>
    </Page>
  )
}
