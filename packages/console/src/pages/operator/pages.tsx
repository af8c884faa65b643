import { Route, Router } from 'preact-iso'
import { NotFound } from '../not-found.tsx'
import AuditLog from './audit-log.tsx'
import Batch from './batch.tsx'
import Batches from './batches.tsx'
import Exception from './exception.tsx'
import Exceptions from './exceptions.tsx'
import Fees from './fees.tsx'
import Float from './float.tsx'
import Health from './health.tsx'
import Invoice from './invoice.tsx'
import Invoices from './invoices.tsx'
import NewPartner from './new-partner.tsx'
import Operators from './operators.tsx'
import Partner from './partner.tsx'
import Partners from './partners.tsx'
import Rails from './rails.tsx'

/** The pages of operators. */
export default function OperatorPages() {
  return (
    <Router>
      <Route path="/partners" component={Partners} />
      <Route path="/partners/:id" component={Partner} />
      <Route path="/new-partner" component={NewPartner} />
      <Route path="/rails" component={Rails} />
      <Route path="/batches" component={Batches} />
      <Route path="/batches/:id" component={Batch} />
      <Route path="/float" component={Float} />
      <Route path="/fees/:id" component={Fees} />
      <Route path="/invoices" component={Invoices} />
      <Route path="/invoices/:partner/:id" component={Invoice} />
      <Route path="/health" component={Health} />
      <Route path="/operators" component={Operators} />
      <Route path="/audit-log" component={AuditLog} />
      <Route path="/exceptions" component={Exceptions} />
      <Route path="/exceptions/:id" component={Exception} />
      <Route default component={NotFound} />
    </Router>
  )
}
