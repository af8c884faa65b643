import type { ApiContext } from '../http/server/server.ts'
import type { Retention } from '../kernel/retention.ts'
import type { Rail } from '../payouts/channels/rail.ts'
import type { Banks } from '../withdrawals/facts.ts'

/** What the operations about rails and payments run on. */
export type RailsContext = ApiContext & {
  /** The configured rails. */
  rails: readonly Rail[]
  banks: Banks
}

/** What the operations about the installation run on. */
export type InstallationContext = RailsContext & { installation: Installation }

/** The facts about the environment for the findings. */
export type Installation = {
  /** The path in MIDMONTH_RAILS; empty if it is not set. */
  railsFile: string
  /** Empty if it is not set. */
  publicUrl: string
  isEmbedded: boolean
  retention: Retention
  /** The installation’s key and its place. */
  keyName: string
}
