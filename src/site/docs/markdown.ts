import path from 'node:path'
import { Marked, type Tokens } from 'marked'
import { escapeHtml, Html } from './html.ts'

/**
 * Renders a guide as HTML. Links between guides work in the repository's web view, where they name files, and on the
 * served pages, where they name addresses.
 * @param file the guide's path below docs/; links are relative to it
 * @param readImage the address of a picture below docs/; if undefined, the picture's text is shown
 * @param isGuide whether a path below docs/ is a guide; a link to any other file of the repository becomes plain text
 */
export function renderGuide(
  text: string,
  {
    file,
    isGuide,
    readImage = () => undefined,
  }: { file: string; isGuide: (file: string) => boolean; readImage?: (file: string) => string | undefined },
): Html {
  const slugs = new Slugs()
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }) {
        const inner = this.parser.parseInline(tokens)
        return `<h${depth} id="${slugs.next(plainText(inner))}">${inner}</h${depth}>\n`
      },
      link({ href, tokens }) {
        const inner = this.parser.parseInline(tokens)
        const target = servedLink(href, { file, isGuide })
        return target === undefined ? inner : `<a href="${escapeHtml(target)}">${inner}</a>`
      },
      tablerow: ({ text: cells }) => {
        const id = slugs.row(cells)
        return `<tr${id === undefined ? '' : ` id="${escapeHtml(id)}"`}>\n${cells}</tr>\n`
      },
      image: ({ href, text: alt }) => {
        const picture = readImage(path.posix.join(path.posix.dirname(file), href))
        return picture === undefined ? escapeHtml(alt) : `<img src="${picture}" alt="${escapeHtml(alt)}">`
      },
      html: ({ text: raw }) => escapeHtml(raw),
    },
  })
  return new Html(marked.parse(text, { async: false }))
}

const plain = new Marked({ renderer: { html: ({ text }) => escapeHtml(text) } })

/** Renders a description of the OpenAPI document, which is Markdown. */
export function renderDescription(text: string): Html {
  return new Html(plain.parse(text, { async: false }))
}

/** Renders a description without a paragraph around it. */
export function renderInline(text: string): Html {
  return new Html(plain.parseInline(text, { async: false }))
}

/** The parts of a guide that begin with a heading, and the named rows of its tables, as plain text. */
export function sectionsOf(text: string): Section[] {
  const slugs = new Slugs()
  const sections: Section[] = []
  const rows: Section[] = []
  for (const token of plain.lexer(text)) {
    if (token.type === 'heading') {
      const inner = plain.parseInline(token.text, { async: false })
      sections.push({ heading: unescapeHtml(inner), id: slugs.next(plainText(inner)), text: '' })
    }
    const last = sections.at(-1)
    if (token.type !== 'heading' && last !== undefined) last.text += `${plainTextOf(token.raw)} `
    if (token.type === 'table') rows.push(...namedRows(token as Tokens.Table, slugs))
  }
  return [...sections, ...rows].map(section => ({ ...section, text: section.text.trim() }))
}

type Section = { heading: string; id: string; text: string }

function namedRows({ rows }: Tokens.Table, slugs: Slugs): Section[] {
  return rows.flatMap(row => {
    const id = slugs.row(row.map(({ text }) => `<td>${plain.parseInline(text, { async: false })}</td>`).join(''))
    return id === undefined ? [] : [{ heading: id, id, text: row.map(({ text }) => plainTextOf(text)).join(' ') }]
  })
}

/** Markdown as one line of plain text: for searches and summaries, not for display as HTML. */
export function plainTextOf(text: string): string {
  return text
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/^ *(```.*|[-|: ]+|[-*>#]+ )/gm, '')
    .replace(/`|\*\*/g, '')
    .replaceAll('|', ' ')
    .replace(/\s+/g, ' ')
    .trim()
}

function unescapeHtml(inner: string): string {
  const characters: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
  return inner.replace(/<[^>]*>/g, '').replace(/&(#39|[a-z]+);/g, (whole, name) => characters[name] ?? whole)
}

export function guideAddress(file: string): string {
  return `/docs/${path.posix.basename(file) === 'CHANGELOG.md' ? 'changelog' : file.replace(/\.md$/, '')}`
}

function servedLink(
  href: string,
  { file, isGuide }: { file: string; isGuide: (file: string) => boolean },
): string | undefined {
  if (/^(https?:|mailto:|#|\/)/.test(href)) return href
  const [target = '', fragment] = href.split('#')
  const resolved = path.posix.relative('docs', path.posix.join('docs', path.posix.dirname(file), target))
  if (!isGuide(resolved)) return undefined
  return guideAddress(resolved) + (fragment === undefined ? '' : `#${fragment}`)
}

/** Heading ids in the format of the repository's web view, so that links to a heading work in both places. */
class Slugs {
  readonly #seen = new Map<string, number>()

  next(heading: string): string {
    const slug = heading
      .trim()
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-')
    const count = this.#seen.get(slug) ?? 0
    this.#seen.set(slug, count + 1)
    return count === 0 ? slug : `${slug}-${count}`
  }

  /** The id of a table row: the name in its first cell, if the cell is only code. The first row with a name gets the id. */
  row(cells: string): string | undefined {
    const [, name] = /<td[^>]*><code>([\w.*-]+)<\/code><\/td>/.exec(cells) ?? []
    if (name === undefined || this.#seen.has(name)) return undefined
    this.#seen.set(name, 1)
    return name
  }
}

function plainText(inner: string): string {
  return inner.replace(/<[^>]*>/g, '').replace(/&(#39|[a-z]+);/g, '')
}
