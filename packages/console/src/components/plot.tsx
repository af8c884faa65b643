import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { isDark } from '../theme.ts'

/** What is counted in each period, drawn on top of the bars before it. Bars that need no name have an empty title. */
export type Bars = { title: string; colour: PlotColour; values: number[] }
export type PlotColour = 1 | 2 | 3 | 4 | 5

/** Figures over time, as bars. A table has the same figures for those who cannot see them. */
export default function Plot({
  caption,
  periods,
  bars,
  format,
  formatTick = format,
  height = 220,
  axisWidth = 70,
}: {
  caption: string
  /** The names of the periods, oldest first. */
  periods: string[]
  bars: Bars[]
  format: (value: number) => string
  /** For the figures at the left. */
  formatTick?: (value: number) => string
  height?: number
  /** Room for the figures at the left. */
  axisWidth?: number
}) {
  const box = useRef<HTMLDivElement>(null)
  const [pointed, setPointed] = useState<number | null>(null)
  const look = isDark.value
  useEffect(() => {
    const element = box.current
    if (element === null) return
    const style = getComputedStyle(element)
    const colour = (name: string) => style.getPropertyValue(name)
    // A canvas does not follow the size of the text by itself.
    const scale = Number(getComputedStyle(document.documentElement).fontSize.replace('px', '')) / 16
    const axis = { stroke: style.color, font: `${11 * scale}px ${style.fontFamily}`, ticks: { show: false } }
    // The bar that ends highest is drawn first, and the ones below it over it.
    const stacked = stack(bars).toReversed()
    const plot = new uPlot(
      {
        ...{ width: element.clientWidth, height: height * scale, legend: { show: false }, padding: [8, 8, 0, 0] },
        cursor: { y: false, points: { show: false } },
        hooks: { setCursor: [({ cursor }) => setPointed(cursor.idx ?? null)] },
        scales: {
          x: { time: false, range: [-0.6, periods.length - 0.4] },
          y: { range: (_, __, max) => [0, max * 1.1 || 1] },
        },
        axes: [
          {
            ...axis,
            size: 28 * scale,
            grid: { show: false },
            values: (_, at) => at.map(index => periods[index] ?? ''),
          },
          {
            ...axis,
            size: axisWidth * scale,
            incrs: [1, 2, 5, 10, 20, 50, ...powersOfTen()],
            grid: { stroke: colour('--plot-line'), width: 1 },
            values: (_, ticks) => ticks.map(tick => formatTick(Math.trunc(tick))),
          },
        ],
        series: [
          {},
          ...stacked.map(each => ({
            fill: colour(`--plot-${each.colour}`),
            stroke: colour(`--plot-${each.colour}`),
            width: 0,
            points: { show: false },
            ...(uPlot.paths.bars === undefined ? {} : { paths: uPlot.paths.bars({ size: [0.72, 72], radius: 0.12 }) }),
          })),
        ],
      },
      [periods.map((_, index) => index), ...stacked.map(({ values }) => values)],
      element,
    )
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: height * scale }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      plot.destroy()
    }
  }, [periods, bars, formatTick, height, axisWidth, look])
  return (
    <>
      <p class="plot-pointed" aria-hidden="true">
        {pointed === null ? (
          ' '
        ) : (
          <>
            <b>{periods[pointed]}</b> {describe(bars, pointed, format)}
          </>
        )}
      </p>
      <div ref={box} class="plot" aria-hidden="true" />
      <div class="hidden-label">
        <table>
          <caption>{caption}</caption>
          <tbody>
            {periods.map(
              (period, index) =>
                bars.some(({ values }) => values[index]) && (
                  <tr key={period}>
                    <th scope="row">{period}</th>
                    <td>{describe(bars, index, format)}</td>
                  </tr>
                ),
            )}
          </tbody>
        </table>
      </div>
    </>
  )
}

function stack(bars: Bars[]): Bars[] {
  let below: number[] = []
  return bars.map(each => {
    below = each.values.map((value, index) => value + (below[index] ?? 0))
    return { ...each, values: below }
  })
}

function describe(bars: Bars[], index: number, format: (value: number) => string): string {
  return bars
    .filter(({ values }) => bars.length === 1 || values[index])
    .map(({ title, values }) => `${title} ${format(values[index] ?? 0)}`.trim())
    .join(', ')
}

function powersOfTen(): number[] {
  return Array.from({ length: 14 }, (_, index) => 10 ** (index + 2)).flatMap(one => [one, 2 * one, 5 * one])
}
