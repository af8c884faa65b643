import { render } from 'preact'
import { App } from './app.tsx'
import { reportErrors } from './report.ts'
import { preloadPage } from './routes.tsx'
import './styles/tokens.css'
import './styles/base.css'
import './styles/shell.css'
import './styles/components.css'
import './styles/payroll.css'
import './styles/operator.css'

reportErrors()
preloadPage(location.pathname)
const root = document.getElementById('app')
if (root !== null) render(<App />, root)
