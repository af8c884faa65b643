/** Shows figures as small bars, the newest on the right. The figures themselves appear elsewhere on the page. */
export function Spark({ values }: { values: number[] }) {
  const highest = Math.max(...values, 1)
  const width = 100 / values.length
  return (
    <svg class="spark" viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
      {values.map((value, index) => {
        // An empty period keeps its place.
        const height = Math.max((value / highest) * 100, 3)
        return (
          <rect
            key={index}
            class={index === values.length - 1 ? 'spark-last' : undefined}
            x={index * width}
            y={100 - height}
            width={width * 0.76}
            height={height}
          />
        )
      })}
    </svg>
  )
}
