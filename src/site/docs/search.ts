import { type Guide, readText } from './guides.ts'
import { guideAddress, plainTextOf, sectionsOf } from './markdown.ts'
import type { Operation } from './openapi.ts'
import { operationAddress } from './reference.ts'

/** A part of a page that a search can find. */
type IndexedSection = { id: number; title: string; heading: string; address: string; text: string }

/** The script with all search entries. A browser loads the script when its reader begins to search. */
export async function searchEntries({ guides, operations }: { guides: Guide[]; operations: Operation[] }) {
  const found: Omit<IndexedSection, 'id'>[] = operations.map(operation => ({
    title: `${operation.method} ${operation.path}`,
    heading: operation.summary,
    address: operationAddress(operation),
    text: `${operation.operationId} ${plainTextOf(operation.description ?? '')}`,
  }))
  for (const guide of guides) {
    const address = guideAddress(guide.file)
    for (const { heading, id, text } of sectionsOf(await readText(guide))) {
      const isTitle = heading === guide.title
      found.push({
        title: guide.title,
        heading: isTitle ? '' : heading,
        address: isTitle ? address : `${address}#${id}`,
        text,
      })
    }
  }
  const entries: IndexedSection[] = found.map((entry, id) => ({ id, ...entry }))
  return `export const entries = ${JSON.stringify(entries)}\n`
}
