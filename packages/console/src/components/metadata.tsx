import type { Metadata } from '@midmonth/sdk'
import { KeyValuesPanel } from './layout.tsx'

/** Shows the metadata that the partner's server has attached to an object. Renders nothing if there is none. */
export function MetadataPanel({ metadata }: { metadata: Metadata }) {
  const entries = Object.entries(metadata)
  if (entries.length === 0) return null
  return <KeyValuesPanel title="Metadata" entries={entries} />
}
