import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { stringify } from 'yaml'
import { alerts, metricsIn, promtool, rulesFile } from './prometheus-files.ts'

/** What Prometheus reads of a process at one moment. @property text undefined if the process did not respond */
export type Scrape = { instance: string; text: string | undefined; at: Date }

export const token = 'a-token-for-prometheus'

export async function scrape(instance: string, address: string): Promise<Scrape> {
  const at = new Date()
  const read = async () => {
    const response = await fetch(`${address}/metrics`, { headers: { authorization: `Bearer ${token}` } })
    return response.ok ? await response.text() : undefined
  }
  return { instance, at, text: await read().catch(() => undefined) }
}

// Of the machine that runs the tests, which may be busy.
const ofMachine = ['MidmonthSlow', 'MidmonthEventLoopBlocked']

/** Minutes before the first fault. */
const quietMinutes = 10

/**
 * Lets promtool evaluate the rules on what was scraped: ten minutes like the first moment, a minute for each further moment, and then as
 * long as the fault lasts like the last moment, with counters that go on growing.
 * @throws with promtool's report if an alert fires before the fault, or if others than the expected alerts fire after it
 */
export async function expectAlerts(
  expected: string[],
  { moments, lastingMinutes }: { moments: Scrape[][]; lastingMinutes: number },
): Promise<void> {
  const ignored = ofMachine.filter(each => !expected.includes(each)).join('|')
  const firing = `group by (alertname) (ALERTS{alertstate="firing", alertname!~"${ignored}"})`
  const faultAt = quietMinutes + moments.length - 1
  const samples = expected.toSorted().map(alert => ({ labels: `{alertname="${alert}"}`, value: 1 }))
  const rulesTest = {
    rule_files: [rulesFile],
    evaluation_interval: '1m',
    tests: [
      {
        interval: '1m',
        input_series: seriesOf(moments, lastingMinutes),
        promql_expr_test: [
          { expr: firing, eval_time: `${quietMinutes - 1}m`, exp_samples: [] },
          { expr: firing, eval_time: `${faultAt + lastingMinutes}m`, exp_samples: samples },
        ],
      },
    ],
  }
  const folder = await mkdtemp(path.join(tmpdir(), 'midmonth-alerts-'))
  try {
    await writeFile(path.join(folder, 'faults.yaml'), stringify(rulesTest, { lineWidth: 0 }))
    await promtool(['test', 'rules', path.join(folder, 'faults.yaml')])
  } finally {
    await rm(folder, { recursive: true })
  }
}

const needed = new Set(alerts.flatMap(({ expr }) => metricsIn(expr)))

function seriesOf(moments: Scrape[][], lastingMinutes: number): { series: string; values: string }[] {
  const originSeconds = (moments[0]?.[0]?.at.getTime() ?? 0) / 1_000
  const read = moments.map(scrapes => new Map(scrapes.flatMap(each => samplesOf(each, originSeconds))))
  const names = new Set(read.flatMap(samples => [...samples.keys()]))
  return [...names].map(series => {
    const values = read.map(samples => samples.get(series))
    const last = values.at(-1)
    const step = isCounter(series) ? (last ?? 0) - (values.at(-2) ?? 0) : 0
    const after = Array.from({ length: lastingMinutes + 1 }, (_, index) =>
      last === undefined ? undefined : last + step * index,
    )
    const first = Array.from({ length: quietMinutes }, () => values[0])
    return { series, values: [...first, ...values.slice(1, -1), ...after].map(value => value ?? '_').join(' ') }
  })
}

/** The samples that the rules need, by series. Time begins at 0 for promtool, so timestamps are moved. */
function samplesOf({ instance, text, at }: Scrape, originSeconds: number): [string, number][] {
  const own = `job="midmonth", instance="${instance}"`
  const up: [string, number] = [`up{${own}}`, text === undefined ? 0 : 1]
  const lines = (text ?? '').matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)
  const samples = [...lines].flatMap(([, name = '', labels, value]): [string, number][] => {
    if (!needed.has(name)) return []
    const series = `${name}{${labels === undefined ? own : `${labels}, ${own}`}}`
    if (!/_timestamp_seconds$|^process_start_time/.test(name)) return [[series, Number(value)]]
    // What is due since less than a minute is being worked on.
    if (name.includes('oldest_due') && at.getTime() / 1_000 - Number(value) < 60) return []
    return [[series, Number(value) - originSeconds + quietMinutes * 60]]
  })
  return [up, ...samples]
}

const isCounter = (series: string) => /^\w+_(total|bucket|sum|count)\{/.test(series)
