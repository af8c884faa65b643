import type { ApiContext, App } from '../http/server/server.ts'
import { fileRailsOf, type Rail } from '../payouts/channels/rail.ts'
import type { Tasks } from '../worker/task.ts'
import { bankFileRoutes } from './bank-file-routes.ts'
import { bankRoutes } from './bank-routes.ts'
import { clockRoutes } from './clock-routes.ts'
import { memberRoutes } from './member-routes.ts'
import { moneyRoutes } from './money-routes.ts'
import { resetRoutes } from './reset-routes.ts'
import { testValueRoutes } from './test-value-routes.ts'

// A move of a clock that takes longer is answered with 202, and continues.
const defaultMoveMsMax = 20_000

/**
 * The operations of a sandbox, for the partner of the key. They move the partner's clock and instruct the simulated bank; production's
 * tasks do the rest.
 * @param options.moveMsMax how long a request waits for a move of a clock
 * @param options.rails the configured rails; the sandbox simulates the banks of those that pay by files
 */
export function sandboxRoutes(
  app: App,
  context: ApiContext,
  {
    tasks,
    moveMsMax = defaultMoveMsMax,
    rails,
  }: { tasks: Partial<Tasks>; moveMsMax?: number | undefined; rails: readonly Rail[] },
): void {
  const sandbox = { ...context, tasks }
  clockRoutes(app, sandbox, { moveMsMax })
  bankRoutes(app, sandbox)
  bankFileRoutes(app, sandbox, { rails: fileRailsOf(rails) })
  memberRoutes(app, sandbox)
  moneyRoutes(app, sandbox)
  resetRoutes(app, sandbox)
  testValueRoutes(app, sandbox)
}
