import type { ApiContext, App } from '../http/server/server.ts'
import type { Rail } from '../payouts/channels/rail.ts'
import { bankFileRoutes } from './bank-file-routes.ts'
import { batchRoutes } from './batch-routes.ts'
import { exceptionRoutes } from './exception-routes.ts'
import { notOursRoutes } from './not-ours-routes.ts'
import { paymentRoutes } from './payment-routes.ts'
import { proposalRoutes } from './proposal-routes.ts'

/** The way of payments through batches and banks. */
export function payoutRoutes(app: App, context: ApiContext, { rails }: { rails: readonly Rail[] }): void {
  batchRoutes(app, context, { rails })
  paymentRoutes(app, context, { rails })
  bankFileRoutes(app, context, { rails })
  exceptionRoutes(app, context)
  proposalRoutes(app, context)
  notOursRoutes(app, context, { rails })
}
