import type { Guide } from './guides.ts'
import { type Html, html } from './html.ts'
import { guideAddress } from './markdown.ts'
import type { Document, Operation } from './openapi.ts'
import { deliveriesAddress, operationAddress, renderMethod } from './reference.ts'

/** The parts of every page around its content. */
export type Site = {
  document: Document
  /** The address of the OpenAPI document. */
  documentAddress: string
  operations: Operation[]
  guides: Guide[]
  /** Addresses of the style sheet, the script, and the search's engine and entries. */
  assets: { style: string; script: string; engine: string; entries: string }
  /** Whether pages may send requests. False in live mode: a live key does not belong in a browser. */
  canSend: boolean
}

/** The page about the operators' API. */
export const operatorsAddress = '/docs/operators'

/** The folders of docs/, in the order of the navigation. Partners rarely need the folded ones. */
const guideGroups = [
  { title: 'Guides', folder: 'guides/', isFolded: false },
  { title: 'Reference', folder: 'reference/', isFolded: false },
  { title: 'Operations', folder: 'operations/', isFolded: false },
  { title: 'Runbooks', folder: 'operations/runbooks/', isFolded: true },
  { title: 'Internals', folder: 'internals/', isFolded: true },
  { title: 'Decisions', folder: 'decisions/', isFolded: true },
]

export function renderPage(site: Site, { title, address, content }: { title: string; address: string; content: Html }) {
  const { document, assets, canSend } = site
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${title} · Midmonth</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${assets.style}">
<script src="${assets.script}" defer></script>
</head>
<body>
<header>
<a class="brand" href="/docs">Midmonth</a> <span class="version">${document.info.version}</span>
<span class="mode">${canSend ? 'sandbox' : 'live'}</span>
<form class="search" role="search" data-engine="${assets.engine}" data-entries="${assets.entries}" hidden>
<input type="search" name="query" placeholder="Search" aria-label="Search the documentation" autocomplete="off" spellcheck="false">
<div class="found" hidden><p role="status"></p><ul></ul></div>
</form>
${canSend ? keyForm : ''}
</header>
<div class="columns">
<nav aria-label="Documentation"><details class="menu" open><summary>Contents</summary>
${renderNavigation(site, address)}
</details></nav>
<main>
${content}
</main>
</div>
</body>
</html>
`
}

const keyForm = html`<form class="key" hidden>
<label>Test key <input type="text" name="key" placeholder="none yet" autocomplete="off" spellcheck="false"></label>
<button type="submit">Use</button> <span class="key-state" role="status"></span>
</form>`

function renderNavigation(site: Site, address: string): Html {
  const { document, documentAddress, operations, guides } = site
  const link = (target: string, label: Html | string) =>
    html`<li><a href="${target}"${target === address ? html` aria-current="page"` : ''}>${label}</a></li>`
  return html`<ul>${link('/docs', 'Overview')}${link(operatorsAddress, 'For operators')}${link('/docs/changelog', 'Changelog')}</ul>
${guideGroups.map(({ title, folder, isFolded }) => {
  const group = guides.filter(({ file }) => file.startsWith(folder) && !file.slice(folder.length).includes('/'))
  const list = html`<ul>${group.map(guide => link(guideAddress(guide.file), guide.title))}</ul>`
  if (group.length === 0) return ''
  if (!isFolded) return html`<h2>${title}</h2>${list}`
  const isHere = group.some(({ file }) => guideAddress(file) === address)
  return html`<details${isHere ? html` open` : ''}><summary>${title}</summary>${list}</details>`
})}
${document.tags.map(
  ({ name }) => html`<h2>${name}</h2>
<ul>${operations
    .filter(({ tags }) => tags.includes(name))
    .map(operation => link(operationAddress(operation), html`${operation.summary} ${renderMethod(operation)}`))}${
    name === 'Webhooks' ? link(deliveriesAddress, 'Webhook deliveries') : ''
  }</ul>`,
)}
<p><a href="${documentAddress}">${documentAddress.slice(1)}</a></p>`
}
