import { mediaTypes } from '../src/contract/media-types.ts'
import { decimalsOf } from '../src/kernel/money.ts'
import { type Setting, settingGroups, settings } from '../src/partners/settings.ts'
import { type Term, tierTerms } from '../src/tiers/terms.ts'
import { sdkNames } from './sdk-names.ts'

type Schema = {
  $ref?: string
  type?: string | string[]
  description?: string
  deprecated?: boolean
  pattern?: string
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
}
type Ref = { $ref?: string }
type Media = { schema: Schema }
type Parameter = Ref & { in: string; name: string; required?: boolean; schema: Schema; description?: string }
type Body = Ref & { required?: boolean; content: Record<string, Media> }
type Response = Ref & { content?: Record<string, Media> }
type Operation = {
  operationId: string
  summary?: string
  description?: string
  deprecated?: boolean
  parameters?: Parameter[]
  requestBody?: Body
  responses: Record<string, Response>
  security?: object[]
}
export type Document = {
  paths: Record<string, Record<string, Operation>>
  webhooks: Record<string, { post: Operation }>
  components: { schemas: Record<string, Schema> }
}

// The SDK prefers the fuller shapes.
const heading = headingOf('openapi-representation.json')

function headingOf(file: string): string {
  return `// Generated from ${file} by \`npm run generate\`. Do not edit.\n`
}

/** The generated files of packages/sdk and the page about its methods, by their path in the repository. */
export function sdkFiles(document: Document): Record<string, string> {
  const folder = 'packages/sdk/src/generated'
  return {
    [`${folder}/schemas.ts`]: schemas(document),
    [`${folder}/operations.ts`]: operations(document),
    [`${folder}/errors.ts`]: errors(document),
    [`${folder}/decimals.ts`]: decimals(),
    'docs/reference/sdk.md': methodList(document),
  }
}

/**
 * The module by which the console calls the operators' API with the client of the SDK: the schemas, the operations by their
 * ids and their types, the states that lists are filtered by, and the forms of a partner's settings and a tier's terms.
 */
export function operatorClient(document: Document, ofPartners: Document): string {
  const { shared, own } = splitTypes(document, ofPartners)
  const calls = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) =>
      callsOf(document, { method: method.toUpperCase(), path, operation }, operatorNames(document, operation)),
    ),
  )
  return [
    headingOf('openapi-operator.json'),
    "import type { Call, CallOptions, List } from '../../../sdk/src/call.ts'",
    "import type { Operation } from '../../../sdk/src/client.ts'",
    "import type { FileSource } from '../../../sdk/src/files.ts'",
    `import type { ${shared.join(', ')} } from '../../../sdk/src/generated/schemas.ts'`,
    '',
    `export type { ${shared.join(', ')} }`,
    '',
    grouped(own),
    operationTable(calls),
    // The rest is in the reference.
    interfaceOf('OperatorOperations', treeOf(calls)).replace(/^ *\/\*\*\n *\* (.*)\n[\s\S]*?\*\/\n/gm, '  /** $1 */\n'),
    '',
    ...valuesOf(document, { type: 'PartnerState', name: 'partnerStates' }),
    ...valuesOf(document, { type: 'PayoutBatchStatus', name: 'payoutBatchStatuses' }),
    ...valuesOf(document, { type: 'InvoiceStatus', name: 'invoiceStatuses' }),
    ...formOfSettings(),
    '',
    ...formOfTerms(),
    '',
  ].join('\n')
}

/** The types that are the same in the document for partners, so that the SDK has them, and the others but for those of errors. */
function splitTypes(document: Document, ofPartners: Document): { shared: string[]; own: string[] } {
  const types = typesByName(document)
  const known = typesByName(ofPartners)
  const own = new Set([...types].flatMap(([name, type]) => (known.get(name) === type ? [] : name)))
  // A type with a part that differs is not the same.
  for (const _ of types)
    for (const [name, type] of types) if (type.match(/\b[A-Z]\w+/g)?.some(part => own.has(part))) own.add(name)
  const isError = (name: string) => name.endsWith('Issue')
  return {
    shared: [...types.keys()].filter(name => !own.has(name) && !isError(name)),
    own: [...types].flatMap(([name, type]) => (own.has(name) && !isError(name) ? type : [])),
  }
}

function typesByName(document: Document): Map<string, string> {
  const names = Object.keys(document.components.schemas)
  return new Map(typesOf(document).map((type, index) => [names[index] ?? '', type]))
}

function operatorNames(document: Document, { operationId: json, responses }: Operation): Names {
  const hasFile = Object.values(responses).some(each => 'text/csv' in (resolve(document, each).content ?? {}))
  return hasFile ? { json, file: `${json}File` } : json
}

/** The fields of the console's form of a partner's settings, by group. */
function formOfSettings(): string[] {
  const all = Object.entries<Setting>(settings)
  const fields = settingGroups.flatMap(group =>
    all
      .filter(([, setting]) => setting.group === group)
      .map(([name, { kind, label, note, unit, choices, byDefault }]) => ({
        ...{ name, group, kind, label, note, unit, choices, byDefault },
      })),
  )
  return [
    'export type PartnerSettingField = {',
    '  name: keyof PartnerSettings',
    '  group: string',
    `  kind: ${[...new Set(fields.map(({ kind }) => `'${kind}'`))].join(' | ')}`,
    '  label: string',
    '  note?: string',
    '  unit?: string',
    '  choices?: Record<string, string>',
    '  /** What a new partner has, unless another value is chosen. */',
    '  byDefault: PartnerSettings[keyof PartnerSettings]',
    '}',
    '',
    `export const partnerSettingFields: PartnerSettingField[] = ${rowsOf(fields)}`,
  ]
}

/** The fields of the console's form of a tier's terms. */
function formOfTerms(): string[] {
  const fields = Object.entries<Term>(tierTerms).map(
    ([name, { line, kind, label, note, choices, byDefault, ifNull }]) => ({
      ...{ name, line, kind, label, note, choices, byDefault, ifNull },
    }),
  )
  return [
    'export type TierTermField = {',
    "  name: Exclude<keyof NewTierTerms, 'currency' | 'version'>",
    '  /** The terms of a line stand side by side. */',
    '  line: string',
    `  kind: ${[...new Set(fields.map(({ kind }) => `'${kind}'`))].join(' | ')}`,
    '  label: string',
    '  note?: string',
    '  choices?: Record<string, string>',
    '  /** The value for a new tier. */',
    '  byDefault?: string | number',
    '  /** How null is worded. Other terms are never null. */',
    '  ifNull?: string',
    '}',
    '',
    `export const tierTermFields: TierTermField[] = ${rowsOf(fields)}`,
  ]
}

function rowsOf(fields: object[]): string {
  return `[\n${fields.map(field => `  ${JSON.stringify(field)},\n`).join('')}]`
}

/** Exports the values of an enum as an array. */
function valuesOf({ components }: Document, { type, name }: { type: string; name: string }): string[] {
  const values = components.schemas[type]?.enum
  if (values === undefined) throw new Error(`${type} is not an enum`)
  return [`export const ${name} = ${JSON.stringify(values)} as const satisfies ${type}[]`, '']
}

/** Types of one line stand together. */
function grouped(types: string[]): string {
  return types.join('\n').replace(/^(export type .*[^{])\n\n(?=export type .*[^{]\n)/gm, '$1\n')
}

function typesOf({ components }: Document): string[] {
  return Object.entries(components.schemas).map(
    ([name, schema]) => `${comment(schema)}export type ${name} = ${typeOf(schema)}\n`,
  )
}

function operationTable(calls: CallOf[]): string {
  return [
    'export const operations: Record<string, Operation> = {',
    ...calls.map(({ name, entry }) => `  '${name}': ${entry},`),
    '}\n',
  ].join('\n')
}

function schemas(document: Document): string {
  const deliveries = Object.values(document.webhooks).map(({ post }) => typeOf(bodyOf(document, post)?.json ?? {}))
  return [
    heading,
    grouped(typesOf(document)),
    '/** The body of a webhook. Narrow it by `type`; new types may be added. */',
    `export type WebhookEvent =${deliveries.map(each => `\n  | ${each}`).join('')}`,
    '',
  ].join('\n')
}

function methodList(document: Document): string {
  const rows = operationsOf(document).flatMap(({ method, path, operation }) =>
    callsOf(document, { method, path, operation }, nameOf(operation)).map(
      ({ name, takes }) =>
        `| \`${name}(${takes.join(', ')})\` | \`${method} ${path}\` | \`${operation.operationId}\` |`,
    ),
  )
  return `# The SDK's methods

Generated from openapi.json and the operations by \`npm run generate\`. Do not edit.
[Use the SDK](../guides/sdk.md) shows how to begin.

Each method is a property of an \`Midmonth\`: \`midmonth.members.list()\`. All methods take options last; a body or query
whose name ends in \`?\` may be left out. Await a \`list…\` for its first page, or iterate over it for all entries;
\`tiers.list\` has one page, an array. An \`export…\`, and \`sandbox.bankFiles.answer\`, returns a \`Response\` whose body
is the file.

| Method | Request | Operation |
|---|---|---|
${rows.join('\n')}

Beyond single requests:

| Method | What it does |
|---|---|
| \`members.import(file, options?)\` | Uploads the complete list of members, follows the job, and resolves with the results |
| \`webhooks.unwrap(body, headers, secret, options?)\` | Verifies a delivery and returns its event |
| \`webhooks.testHeaders(body, secret, options?)\` | Signs a body like Midmonth, for tests of a receiver |
`
}

/** What the hand-written core needs at run time to send a call, and the methods with their types. */
function operations(document: Document): string {
  const calls = operationsOf(document).flatMap(each => callsOf(document, each, nameOf(each.operation)))
  const used = new Set(
    calls.flatMap(
      ({ signatures }) =>
        signatures
          .join('\n')
          .replace(/\/\*[\s\S]*?\*\//g, '')
          .match(/\b[A-Z]\w+/g) ?? [],
    ),
  )
  const imported = Object.keys(document.components.schemas).filter(name => used.has(name))
  return [
    heading,
    "import type { Call, CallOptions, List } from '../call.ts'",
    "import type { Operation } from '../client.ts'",
    "import type { FileSource } from '../files.ts'",
    `import type { ${imported.join(', ')} } from './schemas.ts'`,
    '',
    operationTable(calls),
    interfaceOf('Resources', treeOf(calls)),
    '',
  ].join('\n')
}

type OperationAt = { method: string; path: string; operation: Operation }

/** The operations of the document that the SDK has, in the order of their names there. */
export function operationsOf({ paths }: Pick<Document, 'paths'>): OperationAt[] {
  const order = Object.keys(sdkNames)
  const found = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => isForPartners(operation))
      .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
  const place = ({ operation }: OperationAt) => order.indexOf(operation.operationId)
  return found.toSorted((a, b) => place(a) - place(b))
}

/** The SDK is for the partner's server. What a member's page calls with its own token is not in it. */
function isForPartners({ security }: Operation): boolean {
  return security === undefined || security.length === 0 || security.some(each => 'apiKey' in each)
}

type CallOf = { name: string; entry: string; signatures: string[]; takes: string[] }
type Tree = { [name: string]: Tree | CallOf }

function treeOf(calls: CallOf[]): Tree {
  const root: Tree = {}
  for (const call of calls) {
    const steps = call.name.split('.')
    const last = steps.pop() ?? ''
    let tree = root
    for (const step of steps) {
      tree[step] ??= {}
      tree = tree[step] as Tree
    }
    if (last in tree) throw new Error(`Two operations are named ${call.name} in the SDK`)
    tree[last] = call
  }
  return root
}

function interfaceOf(name: string, tree: Tree): string {
  const members = (tree: Tree, indent: string): string =>
    Object.entries(tree)
      .map(([key, value]) =>
        isCall(value)
          ? value.signatures.map(signature => signature.replace(/^(?=.)/gm, indent)).join('')
          : `${indent}${key}: {\n${members(value, `${indent}  `)}${indent}}\n`,
      )
      .join('')
  return `export interface ${name} {\n${members(tree, '  ')}}`
}

function isCall(value: Tree | CallOf): value is CallOf {
  return Array.isArray(value.signatures)
}

/** What the document says about an operation, with references resolved. */
type Facts = {
  operation: Operation
  method: string
  path: string
  ids: string[]
  query: Parameter[]
  prefers: boolean
  body: ReturnType<typeof bodyOf>
  /** The JSON bodies of the successful answers; none if the answer is a file. */
  shapes: Schema[]
  page: ReturnType<typeof pageOf>
}

type Names = string | { json: string; file: string }

function nameOf({ operationId }: Operation): Names {
  const names = sdkNames[operationId]
  if (names === undefined) throw new Error(`${operationId} has no name in the SDK; set sdk in its declaration`)
  return names
}

function callsOf(document: Document, { method, path, operation }: OperationAt, names: Names): CallOf[] {
  const parameters = (operation.parameters ?? []).map(each => resolve(document, each))
  const ids = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => {
    const parameter = parameters.find(each => each.in === 'path' && each.name === name)
    if (parameter === undefined) throw new Error(`${path} does not declare ${name}`)
    return `${name}: ${typeOf(parameter.schema)}`
  })
  const prefers = parameters.some(each => each.in === 'header' && each.name === 'prefer')
  const shapes = shapesOf(document, operation)
  const facts: Facts = {
    ...{ operation, method, path, ids, prefers, shapes },
    query: parameters.filter(each => each.in === 'query'),
    body: bodyOf(document, operation),
    page: pageOf(document, shapes),
  }
  const [json, file] = typeof names === 'string' ? [names] : [names.json, names.file]
  if (shapes.length === 0) return [fileCall(document, json, facts)]
  return [jsonCall(document, json, facts), ...(file === undefined ? [] : [fileCall(document, file, facts)])]
}

/** Where the place to read on from is not the id of the page's last entry. */
const cursors: Record<string, string> = {
  getEvents: 'lastEventId',
  getJobResults: 'step',
  getMembers: 'memberId',
  getPayCycleDeductions: 'memberId',
  getSettlement: 'memberId',
  getSandboxBankFiles: 'batchId',
  listBatchPayments: 'reference',
  listPayoutProposals: 'subject',
}

function jsonCall(document: Document, name: string, facts: Facts): CallOf {
  const { operation, query, page, shapes } = facts
  const [first = {}, second] = shapes
  const sign = (result: string, dryRun?: boolean) => signatureOf(document, name, { ...facts, result, dryRun })
  const hasCursor = query.some(each => each.name === 'after')
  const cursor = cursors[operation.operationId] ?? 'id'
  return {
    name,
    entry: entryOf(facts, [
      ...(page === undefined ? [] : [`entries: '${page.entries}'`, ...(hasCursor ? [`cursor: '${cursor}'`] : [])]),
    ]),
    takes: namesOf(facts),
    signatures:
      page !== undefined
        ? [sign(`List<${page.type}, ${page.entryType}>`)]
        : second === undefined
          ? [sign(`Call<${typeOf(first)}>`)]
          : // Of two statuses, 200 answers a dry run.
            [sign(`Call<${typeOf(first)}>`, true), sign(`Call<${typeOf(second)}>`, false)],
  }
}

function fileCall(document: Document, name: string, facts: Facts): CallOf {
  const isAlternative = facts.shapes.length > 0
  // A file has every entry, whatever the page.
  const query = isAlternative ? facts.query.filter(each => !/^(skip|take)$/.test(each.name)) : facts.query
  const accepts = isAlternative ? 'text/csv' : '*/*'
  return {
    name,
    entry: entryOf({ ...facts, query, prefers: false }, [`accepts: '${accepts}'`]),
    takes: namesOf({ ...facts, query }),
    signatures: [signatureOf(document, name, { ...facts, query, result: 'Call<Response>' })],
  }
}

function namesOf({ ids, body, query }: Facts): string[] {
  return [
    ...ids.map(id => id.split(':')[0] ?? ''),
    ...(body === undefined ? [] : [`${body.name}${body.isRequired ? '' : '?'}`]),
    ...(query.length === 0 ? [] : [`query${query.some(each => each.required) ? '' : '?'}`]),
  ]
}

function entryOf({ method, path, body, query, prefers }: Facts, more: string[]): string {
  const fields = [
    `method: '${method}', path: '${path}'`,
    ...(body === undefined ? [] : ['hasBody: true']),
    ...(body?.isFile ? [`takesFile: ${body.fileType === undefined ? true : `'${body.fileType}'`}`] : []),
    ...(query.length === 0 ? [] : ['hasQuery: true']),
    ...(prefers ? ['prefers: true'] : []),
    ...more,
  ]
  return `{ ${fields.join(', ')} }`
}

function signatureOf(
  document: Document,
  name: string,
  {
    operation,
    method,
    path,
    ids,
    body,
    query,
    result,
    dryRun,
  }: Facts & { result: string; dryRun?: boolean | undefined },
): string {
  const isQueryRequired = dryRun === true || query.some(each => each.required)
  const takes = [
    ...ids,
    ...(body === undefined ? [] : [`${body.name}${body.isRequired ? '' : '?'}: ${body.type}`]),
    ...(query.length === 0 ? [] : [`query${isQueryRequired ? '' : '?'}: ${typeOfQuery(query, dryRun)}`]),
    'options?: CallOptions',
  ]
  const comment = operationComment(document, operation, `${method} ${path}`)
  return `${comment}${name.split('.').at(-1)}(${takes.join(', ')}): ${result}\n`
}

/** The different JSON bodies of the successful answers, in the order of their status. */
function shapesOf(document: Document, { responses }: Operation): Schema[] {
  const contents = Object.entries(responses)
    .filter(([status]) => status.startsWith('2'))
    .map(([, response]) => resolve(document, response).content ?? {})
  const shapes = contents.flatMap(content => content['application/json']?.schema ?? [])
  return [...new Map(shapes.map(schema => [JSON.stringify(schema), schema])).values()]
}

/** A page is an object with a list that says how many entries it takes, or whether there are more. */
function pageOf(document: Document, [shape, second]: Schema[]) {
  if (shape === undefined || second !== undefined) return undefined
  const { properties = {} } = resolve(document, shape)
  if (!('take' in properties || 'hasMore' in properties)) return undefined
  const lists = Object.entries(properties).map(([name, schema]) => ({ name, ...resolve(document, schema) }))
  // A settlement has totals, too. Its entries are the last list.
  const entries = lists.findLast(({ type }) => type === 'array')
  if (entries === undefined) return undefined
  return { type: typeOf(shape), entries: entries.name, entryType: typeOf(entries.items ?? {}) }
}

function bodyOf(document: Document, { requestBody }: Operation) {
  if (requestBody === undefined) return undefined
  const { content, required = false } = resolve(document, requestBody)
  const json = content['application/json']?.schema
  const files = Object.keys(content).filter(type => type !== 'application/json')
  const isFile = files.length > 0
  // Of several media types, the client detects which one the file has.
  const fileType = files.length === 1 && files[0] === mediaTypes.bytes ? mediaTypes.bytes : undefined
  const types = [...(json === undefined ? [] : [typeOf(json)]), ...(isFile ? ['FileSource'] : [])]
  return {
    json,
    isFile,
    fileType,
    name: json === undefined ? 'file' : 'body',
    isRequired: required,
    type: types.join(' | '),
  }
}

/** @param dryRun the value that `dryRun` must have, if it decides on the answer */
function typeOfQuery(query: Parameter[], dryRun?: boolean): string {
  const isDryRun = (name: string) => name === 'dryRun' && dryRun !== undefined
  return typeOfObject({
    properties: Object.fromEntries(
      query.map(({ name, schema, description }) => [
        name,
        { ...(isDryRun(name) ? { const: dryRun } : schema), ...(description === undefined ? {} : { description }) },
      ]),
    ),
    required: query.filter(({ name, required }) => required || (isDryRun(name) && dryRun)).map(({ name }) => name),
  })
}

function resolve<T extends Ref>(document: Document, value: T): T {
  if (value.$ref === undefined) return value
  const steps = value.$ref.slice('#/'.length).split('/')
  // biome-ignore lint/suspicious/noExplicitAny: a reference leads anywhere in the document.
  const found = steps.reduce<any>((at, step) => at?.[step.replaceAll('~1', '/').replaceAll('~0', '~')], document)
  if (found === undefined) throw new Error(`${value.$ref} does not exist in openapi.json`)
  return resolve(document, found)
}

/** Keywords without an influence on the type, and those that `typeOf` reads. Another one must not be lost silently. */
const knownKeywords = new Set(
  (
    '$ref type const enum anyOf oneOf allOf items properties required additionalProperties description title deprecated ' +
    'pattern format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems ' +
    'uniqueItems minProperties maxProperties propertyNames default examples example discriminator'
  ).split(' '),
)

function typeOf(schema: Schema): string {
  for (const keyword of Object.keys(schema))
    if (!knownKeywords.has(keyword)) throw new Error(`The SDK's generator does not know the keyword ${keyword}`)
  if (schema.$ref !== undefined) return schema.$ref.slice('#/components/schemas/'.length)
  if (schema.const !== undefined) return literal(schema.const)
  if (schema.enum !== undefined) return schema.enum.map(literal).join(' | ')
  const alternatives = schema.anyOf ?? schema.oneOf
  if (alternatives !== undefined) return [...new Set(alternatives.map(typeOf))].join(' | ')
  if (schema.allOf !== undefined) return schema.allOf.map(each => inBrackets(typeOf(each))).join(' & ')
  const types = [schema.type ?? []].flat()
  return types.length === 0 ? 'unknown' : types.map(type => typeOfOne(type, schema)).join(' | ')
}

function typeOfOne(type: string, schema: Schema): string {
  switch (type) {
    case 'string':
      // An id is known by its prefix, so that a member's id is not taken for a withdrawal's.
      return /^\^[a-z]+_$/.test(schema.pattern ?? '') ? `\`${schema.pattern?.slice(1)}\${string}\`` : 'string'
    case 'integer':
    case 'number':
      return 'number'
    case 'boolean':
    case 'null':
      return type
    case 'array':
      return `${inBrackets(typeOf(schema.items ?? {}))}[]`
    case 'object':
      return typeOfObject(schema)
    default:
      throw new Error(`The SDK's generator does not know the type ${type}`)
  }
}

const lineMax = 100

function typeOfObject({ properties = {}, required = [], additionalProperties }: Schema): string {
  const fields = Object.entries(properties).map(([name, schema]) => {
    const isRequired = required.includes(name)
    const key = /^\w+$/.test(name) ? name : `'${name}'`
    const type = typeOf(schema)
    return `${comment(schema)}${key}${isRequired ? '' : '?'}: ${isRequired ? type : `${type} | undefined`}\n`
  })
  const inOneLine = `{ ${fields.map(field => field.trimEnd()).join('; ')} }`
  if (fields.length > 0 && !inOneLine.includes('\n') && inOneLine.length < lineMax) return inOneLine
  if (fields.length > 0) return `{\n${fields.join('').replace(/^(?=.)/gm, '  ')}}`
  return typeof additionalProperties === 'object' ? `Record<string, ${typeOf(additionalProperties)}>` : 'object'
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value.replaceAll("'", "\\'")}'` : JSON.stringify(value)
}

function inBrackets(type: string): string {
  return / [|&] /.test(type) && !type.startsWith('{') ? `(${type})` : type
}

function comment({ description, deprecated }: Schema): string {
  return block([...(description === undefined ? [] : [description]), ...(deprecated ? ['@deprecated'] : [])])
}

function operationComment(document: Document, operation: Operation, request: string): string {
  const { summary, description, deprecated, operationId } = operation
  const codes = codesOf(document, operation)
  return block([
    ...(summary === undefined ? [] : [`${summary}.`]),
    ...(description === undefined ? [] : [description]),
    ...(codes.length === 0 ? [] : [`Errors: ${codes.map(code => classOf(code)).join(', ')}.`]),
    `\`${request}\` (${operationId})`,
    ...(deprecated ? ['@deprecated'] : []),
  ])
}

/** The codes that say something about this operation. The others can come from any. */
function codesOf(document: Document, { responses }: Operation): string[] {
  const general = /^(BadRequest|Forbidden|InternalServerError|NotFound|RateLimitExceeded|Conflict|\w+Validation)$/
  const found = new Set<string>()
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    if ('$ref' in value && typeof value.$ref === 'string') {
      const name = value.$ref.split('/').at(-1) ?? ''
      if (name.endsWith('Issue')) found.add(name.slice(0, -'Issue'.length))
      else visit(resolve(document, value as Ref))
      return
    }
    for (const each of Object.values(value)) visit(each)
  }
  for (const [status, response] of Object.entries(responses)) if (!status.startsWith('2')) visit(response)
  return [...found].filter(code => !general.test(code))
}

function block(lines: string[]): string {
  if (lines.length === 0) return ''
  const text = lines.join('\n\n').replaceAll('*/', '*​/').split('\n')
  if (text.length === 1) return `/** ${text[0]} */\n`
  return `/**\n${text.map(line => ` * ${line}`.trimEnd()).join('\n')}\n */\n`
}

function classOf(code: string): string {
  return code.endsWith('Error') ? code : `${code}Error`
}

function errors(document: Document): string {
  const codes = Object.keys(document.components.schemas)
    .filter(name => name.endsWith('Issue'))
    .map(name => name.slice(0, -'Issue'.length))
  return [
    heading,
    "import { ApiError, type ErrorResponse } from '../errors.ts'",
    `import type { ${codes.map(code => `${code}Issue`).join(', ')} } from './schemas.ts'`,
    '',
    ...codes.map(
      code => `export class ${classOf(code)} extends ApiError<${code}Issue> { declare readonly code: '${code}' }`,
    ),
    '',
    '/** An error of a known code. Narrow it by `code`. */',
    `export type KnownApiError =${codes.map(code => `\n  | ${classOf(code)}`).join('')}`,
    '',
    'export const errorClasses: Record<string, (new (issues: never[], response: ErrorResponse) => ApiError) | undefined> = {',
    ...codes.map(code => `  ${code}: ${classOf(code)},`),
    '}',
    '',
  ].join('\n')
}

function decimals(): string {
  const unusual = [...Map.groupBy(decimalsOf, ([, count]) => count)]
    .filter(([count]) => count !== 2)
    .map(([count, found]) => `  ${count}: '${found.map(([currency]) => currency).join(' ')}',`)
  return [
    '// Generated from src/kernel/money.ts by `npm run generate`. Do not edit.',
    '',
    '/** Currencies by the number of decimals of their minor unit, as in ISO 4217. The others have two. */',
    'export const currenciesByDecimals: Record<number, string> = {',
    ...unusual,
    '}',
    '',
  ].join('\n')
}
