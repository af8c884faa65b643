import { readdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Html } from './html.ts'
import { renderGuide } from './markdown.ts'

const folder = new URL('../../../docs/', import.meta.url)

/** @property file path below docs/, with forward slashes */
export type Guide = { file: string; title: string }

/** The pages to read first, in this order; the others follow by title. */
const first = [
  'guides/integrate.md',
  'guides/run-a-pay-cycle.md',
  'guides/webhooks.md',
  'guides/import-members.md',
  'guides/go-live.md',
  'reference/api.md',
  'reference/errors.md',
  'operations/running.md',
  'operations/troubleshooting.md',
  'internals/architecture.md',
]

/** Finds all guides: every Markdown file in docs/, except the index, which the navigation of the pages replaces. */
export function findGuides(): Guide[] {
  const guides = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map(name => name.replaceAll('\\', '/'))
    .filter(name => name.endsWith('.md') && name !== 'README.md')
    .map(file => ({ file, title: titleOf(readFileSync(new URL(file, folder), 'utf8')) ?? file }))
  const rank = ({ file }: Guide) => (first.includes(file) ? first.indexOf(file) : first.length)
  // Decisions are listed by number.
  const key = ({ file, title }: Guide) => (file.startsWith('decisions/') ? file : title)
  return guides.sort((a, b) => rank(a) - rank(b) || (key(a) < key(b) ? -1 : 1))
}

export async function readGuide(guide: Guide, guides: Guide[]): Promise<Html> {
  const isGuide = (name: string) => guides.some(each => each.file === name)
  return renderGuide(await readText(guide), { file: guide.file, isGuide })
}

/** The Markdown of a guide. */
export async function readText({ file }: Guide): Promise<string> {
  return await readFile(new URL(file, folder), 'utf8')
}

function titleOf(text: string): string | undefined {
  return /^# (.+)$/m.exec(text)?.[1]
}
