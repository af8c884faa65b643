import { useMemo } from 'preact/hooks'
import { lazy } from 'preact-iso'
import { api } from '../api.ts'
import { formatMoment, formatNumber, formatShortDay } from '../format.ts'
import { useLoaded } from '../query.ts'
import { OneFilter, useFilters } from './filters.tsx'
import { Panel } from './layout.tsx'
import type { Bars, PlotColour } from './plot.tsx'

const Plot = lazy(() => import('./plot.tsx'))

const colours: PlotColour[] = ['--accent', '--flow', '--wait', '--bad']
const others: PlotColour = '--ink-3'
const hourMs = 3_600_000
// The retention period of the request log.
const keptMs = 7 * 24 * hourMs

type Count = { from: string; errorCode: string; count: number }

/** Counts the responses per error code over the retention period. Choosing a code shows only its requests. */
export function ErrorPlot() {
  const filters = useFilters()
  const by = filters.get('by') === 'hour' ? 'hour' : 'day'
  const chosen = filters.get('code')
  const { value } = useLoaded(`requests-errors ${by}`, () => api.requests.countErrors({ by }))
  const counts = value?.counts
  const codes = useMemo(() => byFrequency(counts ?? []), [counts])
  const shown = useMemo(() => plotOf(counts ?? [], { by, codes, chosen }), [counts, by, codes, chosen])
  if (value === undefined || codes.length === 0) return null
  return (
    <div class="below-s">
      <Panel title="Errors by code" aside={<OneFilter label="By" name="by" values={['hour', 'day']} shown={by} />}>
        <Plot
          caption={`Errors by code and ${by}`}
          periods={shown.periods}
          bars={shown.bars}
          format={formatNumber}
          height={150}
        />
        <ul class="counts" aria-label="Errors by code in the last seven days">
          {codes.map(({ code, count }, index) => (
            <li key={code}>
              <button
                type="button"
                class="chip"
                aria-pressed={code === chosen}
                onClick={() => filters.set('code', code === chosen ? '' : code)}
              >
                <span class="swatch" style={{ background: `var(${colours[index] ?? others})` }} aria-hidden="true" />
                {code} <b>{formatNumber(count)}</b>
              </button>
            </li>
          ))}
        </ul>
        {!value.isComplete && <p class="quiet">Only the newest 100,000 errors are counted.</p>}
      </Panel>
    </div>
  )
}

function byFrequency(counts: Count[]): { code: string; count: number }[] {
  const sums = new Map<string, number>()
  for (const { errorCode, count } of counts) sums.set(errorCode, (sums.get(errorCode) ?? 0) + count)
  return [...sums].map(([code, count]) => ({ code, count })).sort((one, other) => other.count - one.count)
}

/** Every period of the retention period, including empty ones. The most frequent codes have their own colours; the others share one. */
function plotOf(
  counts: Count[],
  { by, codes, chosen }: { by: 'hour' | 'day'; codes: { code: string }[]; chosen: string },
): { periods: string[]; bars: Bars[] } {
  const stepMs = by === 'hour' ? hourMs : 24 * hourMs
  const endMs = endOf(counts)
  const last = Math.floor(endMs / stepMs)
  const first = Math.floor((endMs - keptMs) / stepMs)
  const starts = Array.from({ length: last - first + 1 }, (_, index) => (first + index) * stepMs)
  const places = new Map(codes.map(({ code }, index) => [code, Math.min(index, colours.length)]))
  const bars = [...codes.slice(0, colours.length).map(({ code }) => code), 'Others'].map(
    (title, index): Bars => ({ title, colour: colours[index] ?? others, values: starts.map(() => 0) }),
  )
  for (const { from, errorCode, count } of counts) {
    if (chosen !== '' && errorCode !== chosen) continue
    const { values } = bars[places.get(errorCode) ?? colours.length] ?? {}
    const index = Math.floor(Date.parse(from) / stepMs) - first
    if (values?.[index] !== undefined) values[index] += count
  }
  return {
    periods: starts.map(start => {
      const instant = new Date(start).toISOString()
      return by === 'hour' ? formatMoment(instant) : formatShortDay(instant.slice(0, 10))
    }),
    bars: bars.filter(({ values }) => values.some(value => value > 0)),
  }
}

/** Returns the current time, unless this browser’s clock is so wrong that the plot would be empty. */
function endOf(counts: Count[]): number {
  const newest = Math.max(...counts.map(({ from }) => Date.parse(from)))
  const now = Date.now()
  return newest > now || newest < now - keptMs - 24 * hourMs ? newest : now
}
