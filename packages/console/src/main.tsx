import { render } from 'preact'
import { App } from './app.tsx'
import { reportErrors } from './report.ts'
import { preloadOperatorPages } from './routes.tsx'
import { loadSession } from './session.ts'
import './styles/tokens.css'
import './styles/base.css'
import './styles/shell.css'
import './styles/components.css'
import './styles/payroll.css'
import './styles/operator.css'

reportErrors()
if (location.pathname.startsWith('/console/operator/')) preloadOperatorPages()
const root = document.getElementById('app')
// What the file shows stays until it is known which page comes. Awaited at the top level, other files could not import this one.
void loadSession().then(() => {
  if (root === null) return
  root.replaceChildren()
  render(<App />, root)
})
