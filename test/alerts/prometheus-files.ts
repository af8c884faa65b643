import { execFile, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { parse } from 'yaml'

// What operators load into Prometheus and Grafana.

export const rulesFile = fileURLToPath(new URL('../../deploy/prometheus/alerts.yaml', import.meta.url))
export const ruleTestsFile = rulesFile.replace('.yaml', '.test.yaml')

export type Alert = {
  alert: string
  expr: string
  labels: { severity: string }
  annotations: { summary: string; runbook: string }
}

export const alerts: Alert[] = parse(readFileSync(rulesFile, 'utf8')).groups.flatMap(
  ({ rules }: { rules: Alert[] }) => rules,
)

type Panel = { title: string; targets?: { expr: string }[] }
const dashboard: { panels: Panel[] } = JSON.parse(
  readFileSync(new URL('../../deploy/grafana/midmonth.json', import.meta.url), 'utf8'),
)

/** The queries of the dashboard, as Grafana sends them. */
export const queries = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr: expr.replaceAll('$__rate_interval', '1m') })),
)

/** The names of the metrics in a query. */
export function metricsIn(expr: string): string[] {
  return expr.match(/\b(?:midmonth|nodejs|process)_\w+|\b(?:up|ALERTS)(?=\{)/g) ?? []
}

export const hasPrometheus = ['promtool', 'prometheus'].every(
  program => spawnSync(program, ['--version']).error === undefined,
)
if (!hasPrometheus) console.warn('Skipped: Prometheus is not installed (Debian: apt-get install prometheus)')

/** Runs promtool. Rejects with its output if it finds a fault. */
export async function promtool(args: string[], { input = '' } = {}): Promise<string> {
  const running = promisify(execFile)('promtool', args)
  running.child.stdin?.end(input)
  const { stdout, stderr } = await running.catch(({ stdout, stderr }) => {
    throw new Error(`promtool ${args.join(' ')}: ${stdout}${stderr}`)
  })
  return stdout + stderr
}
