import type { ComponentType } from 'preact'
import { lazy } from 'preact-iso'
import { Page } from './components/layout.tsx'
import { Empty } from './components/states.tsx'
import { report } from './report.ts'

/** The pages by address. The first that matches is shown. */
const pages: [string, () => Promise<{ default: ComponentType }>][] = [
  ['/console/account', () => import('./pages/account.tsx')],
  ['/console/:partner', () => import('./pages/overview.tsx')],
  ['/console/:partner/withdrawals', () => import('./pages/withdrawals.tsx')],
  ['/console/:partner/withdrawals/:id', () => import('./pages/withdrawal.tsx')],
  ['/console/:partner/intents/:id', () => import('./pages/intent.tsx')],
  ['/console/:partner/members', () => import('./pages/members.tsx')],
  ['/console/:partner/members/:id', () => import('./pages/member.tsx')],
  ['/console/:partner/lists', () => import('./pages/lists.tsx')],
  ['/console/:partner/lists/:id', () => import('./pages/list.tsx')],
  ['/console/:partner/pay-runs', () => import('./pages/pay-runs.tsx')],
  ['/console/:partner/pay-runs/:id', () => import('./pages/pay-run.tsx')],
  ['/console/:partner/cycles', () => import('./pages/cycles.tsx')],
  ['/console/:partner/cycles/:id', () => import('./pages/cycle.tsx')],
  ['/console/:partner/keys', () => import('./pages/keys.tsx')],
  ['/console/:partner/webhooks', () => import('./pages/webhooks.tsx')],
  ['/console/:partner/webhooks/:id', () => import('./pages/webhook.tsx')],
  ['/console/:partner/requests', () => import('./pages/requests.tsx')],
  ['/console/:partner/requests/:id', () => import('./pages/request.tsx')],
  ['/console/:partner/events', () => import('./pages/events.tsx')],
  ['/console/operator/new-partner', () => import('./pages/operator/new-partner.tsx')],
  ['/console/operator/rails', () => import('./pages/operator/rails.tsx')],
  ['/console/operator/partners', () => import('./pages/operator/partners.tsx')],
  ['/console/operator/partners/:id', () => import('./pages/operator/partner.tsx')],
  ['/console/operator/batches', () => import('./pages/operator/batches.tsx')],
  ['/console/operator/batches/:id', () => import('./pages/operator/batch.tsx')],
  ['/console/operator/float', () => import('./pages/operator/float.tsx')],
  ['/console/operator/health', () => import('./pages/operator/health.tsx')],
  ['/console/operator/audit-log', () => import('./pages/operator/audit-log.tsx')],
  ['/console/operator/exceptions', () => import('./pages/operator/exceptions.tsx')],
  ['/console/operator/exceptions/:id', () => import('./pages/operator/exception.tsx')],
  ['/console/:partner/users', () => import('./pages/users.tsx')],
]

export const routes = pages.map(([path, load]) => ({
  path,
  pattern: new RegExp(`^${path.replaceAll(/:\w+/g, '[^/]+')}/*$`),
  component: lazy(() => load().catch(insteadOf)),
}))

/** Loads the page of an address before it is shown. */
export function preloadPage(path: string): void {
  void routes.find(({ pattern }) => pattern.test(path))?.component.preload()
}

/** Loads all pages that the reader may open, one after the other, while the browser has nothing else to do. */
export async function preloadPages({ isOperator }: { isOperator: boolean }): Promise<void> {
  for (const { path, component } of routes)
    if (isOperator || !path.startsWith('/console/operator/')) {
      await new Promise(resolve => (window.requestIdleCallback ?? setTimeout)(resolve))
      await component.preload()
    }
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
            Load it again
          </button>
        </Empty>
      </Page>
    ),
  }
}
