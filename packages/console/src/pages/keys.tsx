import { partnerId } from '../api.ts'
import { ApiKeys } from '../components/api-keys.tsx'
import { useFilters } from '../components/filters.tsx'

/** The API keys of the partner shown, for its developers and admins. */
export default function Keys() {
  const filters = useFilters()
  return <ApiKeys isPage partnerId={partnerId.value ?? ''} wanted={filters.get('id')} />
}
