import type { ApiContext } from '../http/server/server.ts'
import type { FileRailSettings } from '../payouts/books/file-rail-settings.ts'
import type { Tasks } from '../worker/task.ts'
import type { ClockDriver } from './clock-driver.ts'

/** What the operations of the sandbox run on. */
export type SandboxContext = ApiContext & {
  /** The worker's tasks, which some operations run immediately. */
  tasks: Partial<Tasks>
  clockDriver: ClockDriver
  /** How long a call waits for a move of a clock; after that, the response is 202 and the move continues. */
  moveMsMax: number
  /** The rails that pay by files, whose banks the sandbox simulates. */
  fileRails: readonly FileRailSettings[]
  /** Drops the partner's cached keys, because its clock has just started to move. */
  forgetKeys: (partnerId: string) => void
}
