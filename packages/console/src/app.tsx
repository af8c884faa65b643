import { useEffect } from 'preact/hooks'
import { ErrorBoundary, LocationProvider, lazy, Route, Router, useLocation } from 'preact-iso'
import { partnerId, sessionEnded } from './api.ts'
import { Page } from './components/layout.tsx'
import { Empty, Skeleton } from './components/states.tsx'
import { Toasts } from './components/toast.tsx'
import { SignIn } from './pages/sign-in.tsx'
import { loadSession, session } from './session.ts'
import { Shell } from './shell.tsx'

const Overview = lazy(() => import('./pages/overview.tsx'))
const Withdrawals = lazy(() => import('./pages/withdrawals.tsx'))
const Withdrawal = lazy(() => import('./pages/withdrawal.tsx'))

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
  if (session.value === undefined) return <Skeleton lines={4} />
  if (session.value === null || sessionEnded.value || path.startsWith('/console/sign-in')) return <SignIn />
  return <Pages />
}

function Pages() {
  const { path, route } = useLocation()
  const named = /^\/console\/(par_[0-9a-z]+)(?:\/|$)/.exec(path)?.[1]
  const first = session.value?.partners[0]?.id
  const isAtStart = path === '/console'
  useEffect(() => {
    if (isAtStart && first !== undefined) route(`/console/${first}`, true)
  }, [isAtStart, first, route])
  // Before the pages are drawn: their requests name the partner.
  if (named !== undefined && partnerId.peek() !== named) partnerId.value = named
  if (isAtStart && first !== undefined) return null
  if (named !== undefined && !session.value?.partners.some(({ id }) => id === named)) partnerId.value = first
  return (
    <Shell>
      <ErrorBoundary>
        {named !== undefined && partnerId.value !== named ? (
          <NotFound />
        ) : (
          <Router>
            <Route path="/console/:partner" component={Overview} />
            <Route path="/console/:partner/withdrawals" component={Withdrawals} />
            <Route path="/console/:partner/withdrawals/:id" component={Withdrawal} />
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
