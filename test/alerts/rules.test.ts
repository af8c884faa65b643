import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { installationMetrics } from '../../src/diagnosis/installation-metrics.ts'
import { ProcessMetrics } from '../../src/metrics/process-metrics.ts'
import { alerts, hasPrometheus, metricsIn, promtool, queries, rulesFile, ruleTestsFile } from './prometheus-files.ts'

const root = new URL('../../', import.meta.url)
const runbooks = 'docs/operations/runbooks'

test('every alert has a severity, a summary and a runbook, and every runbook an alert', () => {
  for (const { alert, labels, annotations } of alerts) {
    expect(['critical', 'warning'], alert).toContain(labels.severity)
    expect(annotations.summary, alert).not.toBe('')
    const page = readFileSync(new URL(annotations.runbook, root), 'utf8')
    expect(page).toContain(`\`${alert}\` (${labels.severity})`)
  }
  const pages = readdirSync(new URL(runbooks, root)).map(name => `${runbooks}/${name}`)
  expect([...new Set(alerts.map(({ annotations }) => annotations.runbook))].sort()).toEqual(pages.sort())
})

test('every metric that a rule or the dashboard names exists', async () => {
  const exposed = await new ProcessMetrics({}).exposed({ isDatabaseUp: true })
  const ofProcess = [...exposed.matchAll(/^# TYPE (\w+)/gm)].map(([, name = '']) => name)
  const known = new Set([...ofProcess, ...installationMetrics.map(({ name }) => name), 'up', 'ALERTS'])
  const named = [...alerts, ...queries].flatMap(({ expr }) => metricsIn(expr))
  expect(named.length).toBeGreaterThan(80)
  expect(named.filter(name => !known.has(name) && !known.has(name.replace(/_(bucket|sum|count)$/, '')))).toEqual([])
})

test('every command of a runbook exists, with its options', () => {
  const outline: Command = { name: 'midmonth', options: [], commands: JSON.parse(read('cli/outline.json')) }
  const written = readdirSync(new URL(runbooks, root)).flatMap(page =>
    [...read(`${runbooks}/${page}`).matchAll(/`midmonth ([^`]+)`/g)].map(([, words = '']) => words),
  )
  expect(written.length).toBeGreaterThan(60)
  expect(written.filter(words => !isKnown(outline, words.split(' ')))).toEqual([])
})

test('every alert has a unit test', () => {
  const { tests } = parse(readFileSync(ruleTestsFile, 'utf8')) as { tests: { name: string }[] }
  expect(tests.slice(1).map(({ name }) => name)).toEqual(alerts.map(({ alert }) => alert))
})

test.runIf(hasPrometheus)(
  'each alert fires at its fault, and none in quiet hours',
  async () => {
    expect(await promtool(['check', 'rules', rulesFile])).toContain(`${alerts.length} rules found`)
    expect(await promtool(['test', 'rules', ruleTestsFile])).toContain('SUCCESS')
    // Forty rules, each minute of hours.
  },
  300_000,
)

type Command = { name: string; options: { as: string }[]; commands: Command[] }

function isKnown(command: Command, words: string[]): boolean {
  const [first, ...rest] = words
  const inner = command.commands.find(({ name }) => name === first)
  if (inner !== undefined) return isKnown(inner, rest)
  const options = words.filter(word => word.startsWith('--'))
  return (
    (command.commands.length === 0 || words.length === 0) &&
    options.every(option => command.options.some(({ as }) => as.split(/[ ,]+/).includes(option)))
  )
}

function read(file: string): string {
  return readFileSync(new URL(file, root), 'utf8')
}
