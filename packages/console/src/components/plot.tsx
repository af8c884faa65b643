import type { Money } from '@openwage/sdk'
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { formatMoney, formatShortDay } from '../format.ts'
import { theme } from '../theme.ts'

const height = 220

/** Amounts by day, as bars. A table with the same figures is there for those who cannot see it. */
export default function Plot({
  days,
  byDay,
  currency,
}: {
  days: string[]
  byDay: ReadonlyMap<string, number>
  currency: Money['currency']
}) {
  const box = useRef<HTMLDivElement>(null)
  const look = theme.value
  useEffect(() => {
    const element = box.current
    if (element === null) return
    const style = getComputedStyle(element)
    const colour = (name: string) => style.getPropertyValue(name)
    const axis = { stroke: style.color, font: `11px ${style.fontFamily}`, ticks: { show: false } }
    const plot = new uPlot(
      {
        ...{ width: element.clientWidth, height, legend: { show: false }, padding: [8, 8, 0, 0], cursor: { y: false } },
        scales: {
          x: { time: false, range: [-0.6, days.length - 0.4] },
          y: { range: (_, __, max) => [0, max * 1.1 || 1] },
        },
        axes: [
          {
            ...axis,
            grid: { show: false },
            values: (_, at) => at.map(index => (days[index] ? formatShortDay(days[index]) : '')),
          },
          {
            ...axis,
            size: 70,
            grid: { stroke: colour('--plot-line'), width: 1 },
            values: (_, ticks) => ticks.map(tick => formatMoney({ amount: Math.trunc(tick), currency })),
          },
        ],
        series: [
          {},
          {
            fill: colour('--plot-fill'),
            stroke: colour('--plot-fill'),
            width: 0,
            points: { show: false },
            ...(uPlot.paths.bars === undefined ? {} : { paths: uPlot.paths.bars({ size: [0.6, 28], radius: 0.15 }) }),
          },
        ],
      },
      [days.map((_, index) => index), days.map(day => byDay.get(day) ?? 0)],
      element,
    )
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      plot.destroy()
    }
  }, [days, byDay, currency, look])
  return (
    <>
      <div ref={box} class="plot" aria-hidden="true" />
      <table class="hidden-label">
        <caption>Amounts by day</caption>
        <tbody>
          {days
            .filter(day => byDay.has(day))
            .map(day => (
              <tr key={day}>
                <th scope="row">{formatShortDay(day)}</th>
                <td>{formatMoney({ amount: byDay.get(day) ?? 0, currency })}</td>
              </tr>
            ))}
        </tbody>
      </table>
    </>
  )
}
