import type { ProcessMetrics } from './process-metrics.ts'

/** What `GET /metrics` exposes. */
export type MetricsSource = {
  process: ProcessMetrics
  /** Reads the metrics of the installation in the exposition format. */
  readInstallation: () => Promise<string>
  /** The token that a scraper must send; empty if none is needed. */
  token: string
}
