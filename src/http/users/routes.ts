import type { ApiContext, App } from '../server/server.ts'
import { accountRoutes } from './account-routes.ts'
import { authorRoutes } from './author-routes.ts'
import { invitationRoutes } from './invitation-routes.ts'
import { logoRoutes } from './logo-routes.ts'
import { oidcRoutes } from './oidc-routes.ts'
import { sessionRoutes } from './session-routes.ts'
import { userManagementRoutes } from './user-routes.ts'

/**
 * Signing in to the console, and managing users. These routes are not part of the partner API and not in its OpenAPI document:
 * they are for a browser, whose cookie identifies the user.
 */
export function userRoutes(app: App, context: ApiContext): void {
  sessionRoutes(app, context)
  accountRoutes(app, context)
  userManagementRoutes(app, context)
  invitationRoutes(app, context)
  oidcRoutes(app, context)
  authorRoutes(app, context)
  logoRoutes(app, context)
}
