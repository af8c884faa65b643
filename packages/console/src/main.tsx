import { type JSX, render } from 'preact'
import { App } from './app.tsx'
import { Failure } from './components/states.tsx'
import { prepareFormats } from './format.ts'
import { followConnection } from './query.ts'
import { reportErrors } from './report.ts'
import { prefetchOpened, preloadOperatorPages } from './routes.tsx'
import { followOtherTabs, loadSession } from './session.ts'
import { flushDeferred } from './toasts.ts'
import '@fontsource-variable/geist/wght.css'
import './styles/tokens.css'
import './styles/base.css'
import './styles/shell.css'
import './styles/components.css'
import './styles/payroll.css'
import './styles/operator.css'
import './styles/forced-colors.css'

reportErrors()
followOtherTabs()
followConnection()
addEventListener('pagehide', () => void flushDeferred())
if (location.pathname.startsWith('/console/operator/')) preloadOperatorPages()
const root = document.getElementById('app')
// The static page stays until the first page is known. Not a top-level await: other files could then not import this one.
void loadSession().then(
  () => show(<App />),
  error => show(<Failure error={error} onRetry={() => location.reload()} />),
)

function show(shown: JSX.Element): void {
  if (root === null) return
  prefetchOpened()
  root.replaceChildren()
  render(shown, root)
  setTimeout(prepareFormats)
}
