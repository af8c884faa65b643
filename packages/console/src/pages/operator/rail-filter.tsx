import { OneFilter, useFilters } from '../../components/filters.tsx'
import type { Rail } from '../../generated/operator.ts'

/** Filters by rail. Renders nothing if there is only one. */
export function RailFilter({ rails }: { rails: Rail[] }) {
  const filters = useFilters()
  if (rails.length < 2) return null
  return (
    <OneFilter
      label="Rail"
      name="rail"
      values={rails.map(({ name }) => name)}
      labelOf={name => name}
      shown={filters.get('rail')}
    />
  )
}
