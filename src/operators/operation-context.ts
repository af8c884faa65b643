import type { ApiContext } from '../http/server/server.ts'
import type { Rail } from '../payouts/channels/rail.ts'

/** What the operations about rails and payments run on. */
export type RailsContext = ApiContext & {
  /** The configured rails. */
  rails: readonly Rail[]
}
