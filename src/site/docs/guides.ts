import { readdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Html } from './html.ts'
import { renderGuide } from './markdown.ts'

const folder = new URL('../../../docs/', import.meta.url)

/** @property file path below docs/, with forward slashes */
export type Guide = { file: string; title: string; publicUrl: string | undefined }

/** Served beside the pages of docs/, although it is in the folder above. */
const changelog = '../CHANGELOG.md'
const isServed = (name: string) => (name.endsWith('.md') && name !== 'README.md') || name === changelog

/**
 * Finds all guides: every Markdown file in docs/, in the order in which the index names them, and the changelog. The navigation of
 * the pages replaces the index.
 * @param publicUrl the address at which readers reach this service, if known
 */
export function findGuides(publicUrl?: string): Guide[] {
  const index = readFileSync(new URL('README.md', folder), 'utf8')
  const named = [...index.matchAll(/\]\(([^)#]+)/g)].map(([, file = '']) => file).filter(isServed)
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(name => name.replaceAll('\\', '/'))
  const rest = files.filter(isServed).toSorted()
  return [...new Set([...named, ...rest])].map(file => ({
    file,
    title: titleOf(readFileSync(new URL(file, folder), 'utf8')) ?? file,
    publicUrl,
  }))
}

export async function readGuide(guide: Guide, guides: Guide[]): Promise<Html> {
  const isGuide = (name: string) => guides.some(each => each.file === name)
  return renderGuide(await readText(guide), { file: guide.file, isGuide, readImage })
}

/** A picture is inlined: the pages load nothing else. */
function readImage(file: string): string | undefined {
  if (!/^[\w-]+\.png$/.test(file)) return undefined
  return `data:image/png;base64,${readFileSync(new URL(file, folder)).toString('base64')}`
}

/**
 * The Markdown of a guide, for readers of the pages: without the hint for editors, and with the address of this service if known.
 * The address of a request is not used: its caller chooses the address, and other readers would install from there.
 */
export async function readText({ file, publicUrl }: Guide): Promise<string> {
  const text = (await readFile(new URL(file, folder), 'utf8')).replace(/^Generated from .*? Do not edit\.\s/ms, '')
  return publicUrl === undefined
    ? text
    : text.replaceAll('"$MIDMONTH_URL/sdk/', `"${publicUrl.replace(/\/$/, '')}/sdk/`)
}

function titleOf(text: string): string | undefined {
  return /^# (.+)$/m.exec(text)?.[1]
}
