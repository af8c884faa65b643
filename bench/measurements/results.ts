import type { WorkloadName } from '../load/workloads.ts'
import type { Side } from '../machine/service.ts'
import type { BankFileFigures } from './bank-files.ts'
import type { Closing } from './closing.ts'
import type { ConsoleFigure } from './console.ts'
import type { Grown } from './growth.ts'
import type { Import } from './import.ts'
import type { Figures } from './measure.ts'
import type { Overload } from './overload.ts'
import type { Point, Statement } from './pgbench.ts'
import type { Profile } from './profile.ts'
import type { LogCost } from './request-log.ts'
import type { Starts } from './start.ts'
import type { Webhooks } from './webhooks.ts'

/** The figures of one workload at one number of connections. */
export type Cell = Figures & { workload: WorkloadName; connections: number; side: Side; round: number }

export type Results = {
  machine: string
  cells: Cell[]
  /** The points of every round. */
  points: Partial<Record<Statement, Point[][]>>
  starts: Starts | undefined
  overload: Overload | undefined
  logCosts: LogCost[]
  profiles: Profile[]
  imports: Import[]
  closings: Closing[]
  webhooks: Webhooks | undefined
  bankFiles: BankFileFigures[]
  console: ConsoleFigure[]
  grown: Grown[]
  /** The invalid measurements, and why. */
  invalid: string[]
}

/** Marks a measurement as invalid, on the terminal and in the report. */
export function noteFault(results: Results, what: string, fault: string | null): void {
  if (fault === null) return
  console.error(`INVALID: ${what}: ${fault}`)
  results.invalid.push(`${what}: ${fault}`)
}
