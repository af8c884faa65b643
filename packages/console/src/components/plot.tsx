import type { OverviewSeries } from '@openwage/sdk'
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { formatMoney, formatShortDay } from '../format.ts'
import { theme } from '../theme.ts'

const height = 220

/** Amounts over time, as bars. A table with the same figures is there for those who cannot see it. */
export default function Plot({ series }: { series: OverviewSeries }) {
  const { currency, points } = series
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
          x: { time: false, range: [-0.6, points.length - 0.4] },
          y: { range: (_, __, max) => [0, max * 1.1 || 1] },
        },
        axes: [
          {
            ...axis,
            size: 28,
            grid: { show: false },
            values: (_, at) => at.map(index => (points[index] ? formatShortDay(points[index].from) : '')),
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
      [points.map((_, index) => index), points.map(({ totals }) => totals.amount.amount)],
      element,
    )
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      plot.destroy()
    }
  }, [series, look])
  return (
    <>
      <div ref={box} class="plot" aria-hidden="true" />
      <table class="hidden-label">
        <caption>Amounts over time</caption>
        <tbody>
          {points
            .filter(({ totals }) => totals.withdrawals > 0)
            .map(({ from, totals }) => (
              <tr key={from}>
                <th scope="row">{formatShortDay(from)}</th>
                <td>{formatMoney(totals.amount)}</td>
              </tr>
            ))}
        </tbody>
      </table>
    </>
  )
}
