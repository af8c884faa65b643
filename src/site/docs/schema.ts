import { type Html, html } from './html.ts'
import { renderDescription } from './markdown.ts'
import { alternativesOf, type Document, resolve, type Schema } from './openapi.ts'

/** An enumeration longer than this is folded: the 179 currencies would push everything else off the page. */
const valuesShownMax = 8
/** Nested objects are unfolded down to this depth. */
const openDepth = 2

/** Renders the type of a value, with all nested fields. */
export function renderSchema(schema: Schema, document: Document, within: string[] = []): Html {
  const resolved = resolve(schema, document)
  const name = schema.$ref ?? ''
  // A recursive schema is shown once.
  if (name !== '' && within.includes(name)) return html``
  const path = [...within, name]
  const { schemas } = alternativesOf(resolved)
  if (schemas.length === 1 && schemas[0]) return renderSchema(schemas[0], document, path)
  if (schemas.length > 1) return renderAlternatives(schemas, document, path)
  if (resolved.allOf !== undefined) {
    return html`${resolved.allOf.map(part => renderSchema(part, document, path))}`
  }
  if (resolved.type === 'array' && resolved.items) return renderSchema(resolved.items, document, path)
  const fields = Object.entries(resolved.properties ?? {})
  if (fields.length === 0) return html``
  const required = new Set(resolved.required)
  return html`<ul class="fields">${fields.map(([field, inner]) =>
    renderField({ name: field, schema: inner, isRequired: required.has(field) }, document, path),
  )}</ul>`
}

function renderAlternatives(schemas: Schema[], document: Document, path: string[]): Html {
  const shapes = schemas.map(schema => ({
    label: typeOf(schema, document),
    inner: renderSchema(schema, document, path),
  }))
  if (shapes.every(({ inner }) => inner.text === '')) return html``
  return html`<ul class="alternatives">${shapes.map(
    ({ label, inner }) => html`<li><details><summary>${label}</summary>${inner}</details></li>`,
  )}</ul>`
}

/** Renders one field, header or parameter. */
export function renderField(
  { name, schema, isRequired }: { name: string; schema: Schema; isRequired: boolean },
  document: Document,
  within: string[] = [],
): Html {
  const description = descriptionOf(schema, document)
  const inner = renderSchema(schema, document, within)
  return html`<li>
<p class="field"><code>${name}</code> <span class="type">${typeOf(schema, document)}</span>${
    isRequired ? html` <span class="required">required</span>` : ''
  }</p>
${description === undefined ? '' : html`<div class="about">${renderDescription(description)}</div>`}
${renderConstraints(schema, document)}
${inner.text === '' ? '' : html`<details${within.length < openDepth ? html` open` : ''}><summary>Fields</summary>${inner}</details>`}
</li>`
}

/** For a field that may be null, the description may be on its type. */
function descriptionOf(schema: Schema, document: Document): string | undefined {
  const resolved = resolve(schema, document)
  const { schemas } = alternativesOf(resolved)
  const [only] = schemas
  return resolved.description ?? (only && schemas.length === 1 ? resolve(only, document).description : undefined)
}

/** Names a type in words: `string`, `Email (string)`, `array of Member`, `BankAccountUK, BankAccountEU or null`. */
function typeOf(schema: Schema, document: Document): string {
  const resolved = resolve(schema, document)
  const { schemas, isNullable } = alternativesOf(resolved)
  if (schemas.length > 0) {
    const names = [...new Set(schemas.map(each => typeOf(each, document))), ...(isNullable ? ['null'] : [])]
    return names.length === 1 ? String(names[0]) : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`
  }
  if (resolved.type === 'array' && resolved.items) return `array of ${typeOf(resolved.items, document)}`
  if (resolved.title !== undefined) {
    const isText = resolved.type === 'string' && resolved.enum === undefined
    return isText ? `${resolved.title} (string)` : resolved.title
  }
  if (resolved.const !== undefined) return JSON.stringify(resolved.const)
  if (resolved.enum?.length === 1) return JSON.stringify(resolved.enum[0])
  if (resolved.enum !== undefined) return 'enumeration'
  const type = [resolved.type ?? 'any value'].flat().join(' or ')
  return resolved.format === undefined ? type : `${type} (${resolved.format})`
}

function renderConstraints(schema: Schema, document: Document): Html {
  const resolved = resolve(schema, document)
  const [only] = alternativesOf(resolved).schemas
  const own = constraintsOf(resolved)
  const inner = only === undefined || own.length > 0 ? (resolved.items ?? resolved) : only
  const all = own.length > 0 ? own : constraintsOf(resolve(inner, document))
  return all.length === 0
    ? html``
    : html`<p class="constraints">${all.map((each, index) => [index > 0 ? ' · ' : '', each])}</p>`
}

function constraintsOf(schema: Schema): Html[] {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, pattern, enum: values } = schema
  return [
    ...(values && values.length > 1 ? [renderValues(values)] : []),
    ...range(minimum, maximum, ''),
    ...range(minLength, maxLength, ' characters'),
    ...range(minItems, maxItems, ' entries'),
    ...(pattern === undefined ? [] : [html`matches <code>${pattern}</code>`]),
    ...(schema.default === undefined ? [] : [html`default <code>${JSON.stringify(schema.default)}</code>`]),
  ]
}

function renderValues(values: unknown[]): Html {
  const list = html`${values.map((value, index) => [index > 0 ? ', ' : '', html`<code>${String(value)}</code>`])}`
  if (values.length <= valuesShownMax) return html`one of ${list}`
  return html`<details class="values"><summary>one of ${values.length} values</summary>${list}</details>`
}

function range(least: number | undefined, most: number | undefined, unit: string): Html[] {
  if (least === undefined && most === undefined) return []
  if (least === most) return [html`${grouped(least)}${unit}`]
  if (most === undefined) return [html`at least ${grouped(least)}${unit}`]
  if (least === undefined) return [html`at most ${grouped(most)}${unit}`]
  return [html`${grouped(least)} to ${grouped(most)}${unit}`]
}

function grouped(number: number | undefined): string {
  return number?.toLocaleString('en') ?? ''
}
