import { type Html, html } from './html.ts'
import type { Site } from './layout.ts'
import { renderDescription } from './markdown.ts'
import { operationAddress, renderConsole, renderMethod } from './reference.ts'

/** The operations of a first withdrawal. */
const quote = 'createWithdrawalIntent'
const confirm = 'completeWithdrawal'

/** Renders the first page of /docs: an introduction, a first request that works, and an index. */
export function renderOverview({ document, operations, canSend }: Site): Html {
  const first = operations.find(({ operationId }) => operationId === quote)
  const second = operations.find(({ operationId }) => operationId === confirm)
  return html`<h1>${document.info.title}</h1>
${renderDescription(document.info.description)}
${
  first &&
  html`<h2 id="first-request">A first request</h2>
<p>${operationLink(first)} quotes a withdrawal of 50.00 for a member. ${canSend ? sandboxHint : liveHint}</p>
${renderConsole(first, document, { canSend })}`
}
${first && second && html`<p>No money has moved yet. ${operationLink(second)} with the id of that intent moves the money.</p>`}
<h2 id="operations">Operations</h2>
${document.tags.map(
  ({ name, description }) => html`<h3>${name}</h3>
${renderDescription(description)}
<ul class="operations">${operations
    .filter(({ tags }) => tags.includes(name))
    .map(
      operation => html`<li>${renderMethod(operation)} <code>${operation.path}</code> ${operationLink(operation)}</li>`,
    )}</ul>`,
)}`
}

function operationLink(operation: Parameters<typeof operationAddress>[0]): Html {
  return html`<a href="${operationAddress(operation)}">${operation.summary}</a>`
}

const sandboxHint = html`<span class="without-key">The request needs the test key: open the link that this sandbox
printed at its start, or paste the key above.</span>`

const liveHint = html`This service moves real money, so its pages show requests but cannot send them.`
