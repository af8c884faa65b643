import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ErrorBoundary, LocationProvider, Route, Router, useLocation } from 'preact-iso'
import { partnerId, sessionEnded, showPartner } from './api.ts'
import { Page } from './components/layout.tsx'
import { Failure } from './components/states.tsx'
import { Toasts } from './components/toast.tsx'
import { ByLink, linkPages } from './pages/by-link.tsx'
import { NotFound } from './pages/not-found.tsx'
import { SignIn } from './pages/sign-in.tsx'
import { report } from './report.ts'
import { prefetchPointedAt, preloadOperatorPages, routes } from './routes.tsx'
import { session } from './session.ts'
import { Shell } from './shell.tsx'

export function App() {
  return (
    <LocationProvider scope="/console">
      <Gate />
      <Toasts />
    </LocationProvider>
  )
}

/** Shows the pages if the reader is signed in, otherwise the sign-in page. */
function Gate() {
  const { path } = useLocation()
  const ofLink = linkPages.find(page => path === `/console/${page}`)
  if (ofLink !== undefined) return <ByLink page={ofLink} />
  if (session.value === null || sessionEnded.value || path.startsWith('/console/sign-in')) return <SignIn />
  return <Pages key={session.value.user.id} />
}

/** Remounts the page for each address: a form half filled in for one record must never be sent for another. */
function FreshPage({ path, component: Component }: { path: string; component: ComponentType }) {
  // The router replaces the pattern with the address.
  return <Component key={path} />
}

function Pages() {
  const { path, route } = useLocation()
  const named = /^\/console\/(par_[0-9a-z]+)(?:\/|$)/.exec(path)?.[1]
  const first = session.value?.partners[0]?.id
  const isOfOperator = path.startsWith('/console/operator/')
  const isAtStart = path === '/console' || path === '/console/'
  // The operator of an installation without partners starts by creating one.
  const start =
    first !== undefined ? `/console/${first}` : session.value?.isOperator ? '/console/operator/partners' : undefined
  useEffect(() => {
    if (isAtStart && start !== undefined) route(start, true)
  }, [isAtStart, start, route])
  // Set before the pages render: their requests name the partner.
  const isKnown = (wanted: string | undefined) => session.value?.partners.some(({ id }) => id === wanted) === true
  const shown = [named, partnerId.peek()].find(isKnown) ?? first
  showPartner(shown)
  const [failure, setFailure] = useState<unknown>()
  useEffect(() => setFailure(undefined), [path])
  const onError = (error: unknown) => {
    report(error)
    setFailure(error)
  }
  const isOperator = session.value?.isOperator ?? false
  useEffect(() => {
    if (isOperator) (window.requestIdleCallback ?? setTimeout)(preloadOperatorPages)
  }, [isOperator])
  useEffect(prefetchPointedAt, [])
  if (isAtStart && start !== undefined) return null
  return (
    <Shell>
      <ErrorBoundary onError={onError}>
        {failure !== undefined ? (
          <Page title="Error">
            <Failure error={failure} onRetry={() => setFailure(undefined)} />
          </Page>
        ) : (named !== undefined && named !== shown) || (isOfOperator && !session.value?.isOperator) ? (
          <NotFound />
        ) : (
          <Router>
            {routes.map(([path, component]) => (
              <FreshPage key={path} path={path} component={component} />
            ))}
            <Route default component={NotFound} />
          </Router>
        )}
      </ErrorBoundary>
    </Shell>
  )
}
