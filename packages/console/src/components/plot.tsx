import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { isDark } from '../theme.ts'

/** One series of values per period, stacked on the series before it. An unnamed series has an empty title. */
export type Bars = { title: string; colour: PlotColour; values: number[] }
/** A colour of the style sheet. */
export type PlotColour = '--accent' | '--accent-2' | '--flow' | '--wait' | '--bad' | '--ink-3'

// The width of a digit on an axis, whose text is 12 pixels high.
const characterWidth = 7

/** The position of a period, in pixels of the page. */
type Place = { index: number; left: number; width: number }

type PlotProps = {
  caption: string
  /** The names of the periods, oldest first. */
  periods: string[]
  bars: Bars[]
  format: (value: number) => string
  /** Formats the figures on the left axis. */
  formatTick?: (value: number) => string
  height?: number
}

/**
 * Figures over time, as bars. Pointing at a period, or reaching it with the arrow keys, shows its figures. A table has the same
 * figures for screen readers.
 */
export default function Plot({ caption, periods, bars, format, formatTick = format, height = 220 }: PlotProps) {
  const box = useRef<HTMLDivElement>(null)
  const drawn = useRef<uPlot>(undefined)
  const [pointed, setPointed] = useState<Place>()
  const look = isDark.value
  const point = (index: number | null | undefined) => {
    const plot = drawn.current
    if (plot === undefined || index == null) return setPointed(undefined)
    const left = plot.valToPos(index - 0.5, 'x') + plot.over.offsetLeft
    setPointed({ index, left, width: plot.valToPos(index + 0.5, 'x') + plot.over.offsetLeft - left })
  }
  useEffect(() => {
    const element = box.current
    if (element === null) return
    const { plot, fit } = draw(element, { periods, bars, formatTick, height, onPoint: point })
    drawn.current = plot
    const observer = new ResizeObserver(() => {
      // It is also called once for the width that the plot already has, perhaps after the first key.
      if (element.clientWidth === plot.width) return
      setPointed(undefined)
      fit()
    })
    observer.observe(element)
    return () => {
      observer.disconnect()
      plot.destroy()
      setPointed(undefined)
    }
  }, [periods, bars, formatTick, height, look])
  const last = periods.length - 1
  const onKeyDown = (event: KeyboardEvent) => {
    const from = pointed?.index ?? last + 1
    const next = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: last }[event.key]
    if (next === undefined) return
    event.preventDefault()
    point(Math.min(Math.max(next, 0), last))
  }
  return (
    <div class="plot-frame">
      {/* The arrow keys choose a period, and a screen reader reads out its figures. */}
      <div
        ref={box}
        class="plot"
        role="slider"
        tabIndex={0}
        aria-label={caption}
        aria-valuemin={0}
        aria-valuemax={last}
        aria-valuenow={pointed?.index ?? last}
        aria-valuetext={textOf(pointed?.index ?? last)}
        onKeyDown={onKeyDown}
        onFocus={event => event.currentTarget.matches(':focus-visible') && point(last)}
        onBlur={() => point(undefined)}
      />
      {pointed && (
        <>
          {/* Styles set by script are allowed by the page's content security policy. */}
          <span class="plot-band" style={{ left: `${pointed.left}px`, width: `${pointed.width}px` }} />
          <p
            class={`plot-pointed${pointed.index > last / 2 ? ' plot-pointed-left' : ''}`}
            style={{ left: `${pointed.left + pointed.width / 2}px` }}
            aria-hidden="true"
          >
            <b>{periods[pointed.index]}</b>
            {shownAt(bars, pointed.index).map(({ title, value }) => (
              <span key={title}>
                {title} {format(value)}
              </span>
            ))}
          </p>
        </>
      )}
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
    </div>
  )

  function textOf(index: number): string {
    return `${periods[index] ?? ''}: ${describe(bars, index, format)}`
  }
}

type Drawn = Pick<Required<PlotProps>, 'periods' | 'bars' | 'formatTick' | 'height'> & {
  onPoint: (index: number | null | undefined) => void
}

/** @returns the plot, and a function that resizes it to its element */
function draw(element: HTMLElement, { periods, bars, formatTick, height, onPoint }: Drawn) {
  const style = getComputedStyle(element)
  const colour = (name: PlotColour | '--line') => colourOf(name, element)
  // A canvas does not follow the text size.
  const scale = Number(getComputedStyle(document.documentElement).fontSize.replace('px', '')) / 16
  const axis = { stroke: style.color, font: `${12 * scale}px ${style.fontFamily}`, ticks: { show: false } }
  // Drawn from the highest bar down, so that each lower bar covers part of the one above.
  const stacked = stack(bars).toReversed()
  const ticks = ticksUpTo(Math.max(...stacked.flatMap(({ values }) => values), 0))
  const widest = (words: string[]) => Math.max(...words.map(({ length }) => length), 0) * characterWidth * scale
  const labelWidth = widest(periods) + 16 * scale
  const size = () => ({ width: element.clientWidth, height: height * scale })
  const plot = new uPlot(
    {
      ...{ ...size(), legend: { show: false }, padding: [8, 16, 0, 0] },
      cursor: { x: false, y: false, points: { show: false }, drag: { x: false } },
      hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx)] },
      scales: {
        x: { time: false, range: [-0.6, periods.length - 0.4] },
        y: { range: [0, ticks.at(-1) ?? 1] },
      },
      axes: [
        {
          ...axis,
          size: 28 * scale,
          grid: { show: false },
          // Labels as many periods as there is room for, from the newest back.
          splits: ({ width }) => everyNth(Math.ceil((labelWidth * periods.length) / width), periods.length),
          values: (_, at) => at.map(index => periods[index] ?? ''),
        },
        {
          ...axis,
          size: widest(ticks.map(formatTick)) + 12 * scale,
          splits: ticks,
          grid: { stroke: colour('--line'), width: 1 },
          values: (_, at) => at.map(formatTick),
        },
      ],
      series: [
        {},
        ...stacked.map(each => ({
          fill: colour(each.colour),
          stroke: colour(each.colour),
          width: 0,
          points: { show: false },
          ...(uPlot.paths.bars === undefined ? {} : { paths: uPlot.paths.bars({ size: [0.8, 96], radius: 0.08 }) }),
        })),
      ],
    },
    [periods.map((_, index) => index), ...stacked.map(({ values }) => values)],
    element,
  )
  return { plot, fit: () => plot.setSize(size()) }
}

/** A colour for a canvas, which knows no custom properties, in the current scheme. */
function colourOf(name: string, within: Element): string {
  const probe = document.createElement('i')
  probe.style.color = `var(${name})`
  within.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

function stack(bars: Bars[]): Bars[] {
  let below: number[] = []
  return bars.map(each => {
    below = each.values.map((value, index) => value + (below[index] ?? 0))
    return { ...each, values: below }
  })
}

/** The non-zero values of a period; the first value if all are zero. */
function shownAt(bars: Bars[], index: number): { title: string; value: number }[] {
  const all = bars.map(({ title, values }) => ({ title, value: values[index] ?? 0 }))
  const some = all.filter(({ value }) => value !== 0)
  return some.length === 0 ? all.slice(0, 1) : some
}

function describe(bars: Bars[], index: number, format: (value: number) => string): string {
  return shownAt(bars, index)
    .map(({ title, value }) => `${title} ${format(value)}`.trim())
    .join(', ')
}

/** Round figures from 0 to the first that reaches `highest`, in at most five steps. */
function ticksUpTo(highest: number): number[] {
  const power = 10 ** Math.floor(Math.log10(Math.max(highest, 5) / 5))
  const step = [1, 2, 5].map(each => each * power).find(each => each * 5 >= highest) ?? 10 * power
  return Array.from({ length: Math.max(Math.ceil(highest / step), 1) + 1 }, (_, index) => index * step)
}

/** Every nth index, counted back from the last. */
function everyNth(n: number, count: number): number[] {
  return Array.from({ length: Math.ceil(count / n) }, (_, index) => count - 1 - index * n).toReversed()
}
