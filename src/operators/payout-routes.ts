import type { ApiContext, App } from '../http/server/server.ts'
import { bankFileRoutes } from './bank-file-routes.ts'
import { batchRoutes } from './batch-routes.ts'
import { exceptionRoutes } from './exception-routes.ts'
import { notOursRoutes } from './not-ours-routes.ts'
import { paymentRoutes } from './payment-routes.ts'
import { proposalRoutes } from './proposal-routes.ts'
import type { RailsOfOperators } from './rail-routes.ts'

/** The way of payments through batches and banks. */
export function payoutRoutes(app: App, context: ApiContext, rails: Pick<RailsOfOperators, 'fileRails'>): void {
  batchRoutes(app, context, rails)
  paymentRoutes(app, context, rails)
  bankFileRoutes(app, context, rails)
  exceptionRoutes(app, context)
  proposalRoutes(app, context)
  notOursRoutes(app, context, rails)
}
