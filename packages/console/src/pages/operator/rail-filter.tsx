import { ChoiceFilter, useFilters } from '../../components/filters.tsx'
import type { Rail } from '../../generated/admin.ts'

/** One of the rails, if there is a choice. */
export function RailFilter({ rails }: { rails: Rail[] }) {
  const filters = useFilters()
  if (rails.length < 2) return null
  return (
    <ChoiceFilter
      label="Rail"
      values={rails.map(({ name }) => name)}
      labelOf={name => name}
      chosen={filters.all('rail')}
      onChange={values => filters.set('rail', ...values.slice(-1))}
    />
  )
}
