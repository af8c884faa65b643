import { type Html, html } from './html.ts'
import { renderDescription, renderInline } from './markdown.ts'
import {
  callerOf,
  type Document,
  type DocumentedResponse,
  exampleOf,
  exampleOfContent,
  type Operation,
  type Parameter,
  resolve,
  type Schema,
} from './openapi.ts'
import { samplesOf } from './samples.ts'
import { renderField, renderSchema } from './schema.ts'

const tableMediaType = 'text/csv'

export function operationAddress({ operationId }: Operation): string {
  return `/docs/reference/${operationId}`
}

/** Renders one operation: its description, a form that sends a request, its parameters, its body and its responses. */
export function renderOperation(operation: Operation, document: Document, { canSend }: { canSend: boolean }): Html {
  const { summary, description, deprecated, parameters = [], requestBody, responses } = operation
  const places = [
    { title: 'Path', parameters: parameters.filter(each => each.in === 'path') },
    { title: 'Query', parameters: parameters.filter(each => each.in === 'query') },
    { title: 'Headers', parameters: parameters.filter(each => each.in === 'header') },
  ].filter(place => place.parameters.length > 0)
  return html`<h1>${summary}</h1>
<p class="route">${renderMethod(operation)} <code>${operation.path}</code>${deprecated ? html` <span class="deprecated">deprecated</span>` : ''}</p>
${description === undefined ? '' : renderDescription(description)}
<h2 id="request">Request</h2>
${renderConsole(operation, document, { canSend })}
${places.map(
  place => html`<h3>${place.title}</h3>
<ul class="fields">${place.parameters.map(({ name, schema, description: about, required = false }) =>
    renderField(
      { name, schema: about === undefined ? schema : { ...schema, description: about }, isRequired: required },
      document,
    ),
  )}</ul>`,
)}
${Object.entries(requestBody?.content ?? {}).map(
  ([mediaType, { schema }]) => html`<h3>Body: ${mediaType}</h3>${renderWhole(schema, document)}`,
)}
<h2 id="responses">Responses</h2>
${Object.entries(responses).map(([status, answer]) => renderResponse(status, answer, document))}`
}

export const deliveriesAddress = '/docs/reference/deliveries'

/** Renders the requests that the service sends to webhook endpoints: their headers, and the body of each type. */
export function renderDeliveries(document: Document): Html {
  const deliveries = Object.entries(document.webhooks ?? {})
  const { parameters = [] } = deliveries[0]?.[1].post ?? {}
  return html`<h1>Webhook deliveries</h1>
<p>The service sends one <code>POST</code> per event to each webhook endpoint that takes its type. A status of 2XX within 15 seconds is a success.</p>
<h2 id="headers">Headers</h2>
<ul class="fields">${parameters.map(({ name, schema, description = '', required = false }) =>
    renderField({ name, schema: { ...schema, description }, isRequired: required }, document),
  )}</ul>
<h2 id="bodies">Bodies</h2>
${deliveries.map(([type, { post }]) => {
  const body = post.requestBody?.content['application/json']
  return html`<details id="${type}"><summary><code>${type}</code> ${renderInline(post.summary)}</summary>
${body === undefined ? '' : html`${renderWhole(body.schema, document)}<h4>Example</h4><pre><code>${JSON.stringify(exampleOfContent(body, document), null, 2)}</code></pre>`}
</details>`
})}`
}

export function renderMethod({ method }: Operation): Html {
  return html`<span class="method ${method.toLowerCase()}">${method}</span>`
}

function renderResponse(
  status: string,
  { description, headers = {}, content = {} }: DocumentedResponse,
  document: Document,
): Html {
  const isRefusal = Number(status) >= 400
  const { 'application/json': json, ...files } = content
  const fileTypes = Object.keys(files)
  // All refusals have the same shape; listing its fields for each refusal would hide the successful response.
  const shape = json && !isRefusal ? renderWhole(json.schema, document) : html``
  const example = json && exampleOfContent(json, document)
  return html`<details class="answer ${isRefusal ? 'refusal' : 'success'}"${isRefusal ? '' : html` open`}>
<summary><span class="status">${status}</span> ${isRefusal ? codesOf(description) : renderInline(description)}</summary>
${isRefusal ? renderDescription(description) : ''}
${shape}
${fileTypes.length > 0 ? html`<p>${json ? 'Also as' : 'As'} ${fileTypes.map(type => html`<code>${type}</code> `)}</p>` : ''}
${example === undefined ? '' : html`<h4>Example</h4><pre><code>${JSON.stringify(example, null, 2)}</code></pre>`}
${
  isRefusal || Object.keys(headers).length === 0
    ? ''
    : html`<details><summary>Headers</summary><ul class="fields">${Object.entries(headers).map(
        ([name, header]) =>
          html`<li><p class="field"><code>${name}</code></p>${header.description === undefined ? '' : html`<div class="about">${renderDescription(header.description)}</div>`}</li>`,
      )}</ul></details>`
}
</details>`
}

/** Renders a body: its type and its fields. */
function renderWhole(schema: Schema, document: Document): Html {
  const { description } = resolve(schema, document)
  return html`${description === undefined ? '' : renderDescription(description)}${renderSchema(schema, document)}`
}

/** Returns the heading of a refusal. Its description has one line per code, `Code`: sentence; the codes form the heading. */
function codesOf(description: string): string {
  return [...new Set([...description.matchAll(/^`(\w+)`:/gm)].map(match => match[1]))].join(', ')
}

/** Renders the form that builds one request and shows it for curl; page.js sends the request if `canSend`. */
export function renderConsole(operation: Operation, document: Document, site: { canSend: boolean }): Html {
  const { method, path, parameters = [], requestBody } = operation
  const bodies = Object.entries(requestBody?.content ?? {})
  const [curl, ...others] = samplesOf(operation, document)
  const caller = callerOf(operation)
  // The page keeps a key, but no tokens.
  const canSend = site.canSend && caller !== 'token'
  return html`<form class="console" data-method="${method}" data-path="${path}" data-needs-key="${caller === 'key' ? 'yes' : 'no'}" data-needs-token="${caller === 'token' ? 'yes' : 'no'}" data-can-send="${canSend ? 'yes' : 'no'}" autocomplete="off">
${parameters.map(parameter => renderInput(parameter, document))}
${
  bodies.length < 2
    ? bodies.map(([mediaType]) => html`<input type="hidden" name="mediaType" value="${mediaType}">`)
    : html`<label>Body as <select name="mediaType">${bodies.map(([mediaType]) => html`<option>${mediaType}</option>`)}</select></label>`
}
${bodies.map(([mediaType, content]) => renderBody(mediaType, exampleOfContent(content, document)))}
${canSend ? html`<p class="actions"><button type="submit">Send</button> <span class="progress" role="status"></span></p>` : ''}
<output class="result" hidden><span class="result-status"></span><pre><code class="result-body"></code></pre><details><summary>Headers</summary><pre><code class="result-headers"></code></pre></details></output>
<details class="curl"${canSend ? '' : html` open`}><summary>The same with curl</summary><pre><code>${curl.code}</code></pre><button type="button" class="copy" hidden>Copy</button></details>
</form>
${others.map(({ title, code }) => html`<details class="sample"><summary>The same with ${title}</summary><pre><code>${code}</code></pre></details>`)}`
}

// Only ids in the path are filled in; the page's script replaces them with known ones. A fixed idempotency key would make a
// second, changed request fail.
function renderInput(parameter: Parameter, document: Document): Html {
  const { name, in: place, required = false, example, schema } = parameter
  const value = place === 'path' ? String(example ?? exampleOf(schema, document)) : ''
  const { type, enum: listed } = resolve(schema, document)
  const isList = type === 'array'
  const attributes = html`name="${name}" data-in="${place}"${required ? html` required` : ''}${isList ? html` data-list` : ''}`
  const label = html`<span><code>${name}</code>${isList ? ' (several with commas)' : ''}</span>`
  const values = listed ?? (type === 'boolean' ? [true, false] : undefined)
  if (values !== undefined) {
    return html`<label>${label}<select ${attributes}><option value=""></option>${values.map(each => html`<option>${String(each)}</option>`)}</select></label>`
  }
  const fresh =
    name === 'x-idempotency-key' ? html`<button type="button" class="fresh-key" hidden>New key</button>` : html``
  return html`<label>${label}<input type="text" ${attributes} value="${value}" spellcheck="false">${fresh}</label>`
}

function renderBody(mediaType: string, example: unknown): Html {
  const label = html`<span>Body</span>`
  if (mediaType === 'application/json' || mediaType === tableMediaType) {
    const text = typeof example === 'string' ? example : JSON.stringify(example, null, 2)
    const rows = Math.min(16, text.split('\n').length + 1)
    return html`<label data-body="${mediaType}">${label}<textarea rows="${rows}" spellcheck="false">${text}</textarea></label>`
  }
  return html`<label data-body="${mediaType}">${label}<input type="file"></label>`
}
