import { eventRoutes } from './events/routes.ts'
import { docsRoutes } from './http/docs/routes.ts'
import { documentation } from './http/documentation.ts'
import { healthRoutes } from './http/health.ts'
import { serviceRoutes } from './http/routes.ts'
import { type App, createServer, type Edge } from './http/server.ts'
import { ledgerRoutes } from './ledger/routes.ts'
import { memberJobRoutes } from './member-imports/routes.ts'
import { memberRoutes } from './members/routes.ts'
import { payCycleRoutes } from './pay-cycles/routes.ts'
import { payRunRoutes } from './pay-runs/routes.ts'
import { settlementRoutes } from './settlements/routes.ts'
import { tierRoutes } from './tiers/routes.ts'
import { withdrawalRoutes } from './withdrawals/routes.ts'

/**
 * The whole API, ready to listen or to be called without a socket.
 * @param hasDocs whether it serves the documentation's pages
 */
export async function buildApp(edge: Edge, { hasDocs = true }: { hasDocs?: boolean } = {}): Promise<App> {
  const app = createServer(edge)
  const openapi = await documentation(app)
  if (hasDocs) docsRoutes(app, { mode: edge.mode, openapi })
  tierRoutes(app, edge)
  memberRoutes(app, edge)
  memberJobRoutes(app, edge)
  withdrawalRoutes(app, edge)
  payRunRoutes(app, edge)
  payCycleRoutes(app, edge)
  settlementRoutes(app, edge)
  ledgerRoutes(app, edge)
  eventRoutes(app, edge)
  healthRoutes(app, { db: edge.db, isWorking: null })
  serviceRoutes(app, edge)
  await app.ready()
  return app
}
