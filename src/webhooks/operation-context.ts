import type { ApiContext } from '../http/server/server.ts'
import type { Fence } from './fence.ts'

/** What the operations of webhooks run on. */
export type WebhookContext = ApiContext & {
  /** The targets that deliveries may be sent to. */
  fence: Fence
}
