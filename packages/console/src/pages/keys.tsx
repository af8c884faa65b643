import { partnerId } from '../api.ts'
import { ApiKeys } from '../components/api-keys.tsx'
import { useFilters } from '../components/filters.tsx'
import type { PartnerId } from '../generated/operator.ts'

/** The API keys of the partner shown, for its developers and admins. */
export default function Keys() {
  const filters = useFilters()
  return <ApiKeys isPage partnerId={partnerId.value as PartnerId} wanted={filters.get('id')} />
}
