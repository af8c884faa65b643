import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { parse } from 'yaml'
import type { Exchange } from './service.ts'

type Schema = { $ref?: string }
type Body = { content: { 'application/json': { schema: Schema } } }
type Parameter = { $ref?: string; name: string; in: string; required?: boolean; schema: Schema }
type Operation = { parameters?: Parameter[]; requestBody?: Body; responses: Record<string, Body> }
type Document = {
  paths: Record<string, Record<string, Operation>>
  webhooks: Record<string, { post: { requestBody: Body } }>
  components: { parameters: Record<string, Parameter> }
}

/**
 * Validates requests, responses and notifications against the vendor's OpenAPI documents, which are not part of this repository.
 * Each function returns the faults it found.
 */
export function readDocuments(folder: string) {
  const read = (name: string) => parse(readFileSync(path.join(folder, name), 'utf8')) as Document
  const transfers = read('TransferService-v4.yaml')
  const webhooks = read('BalancePlatformTransferNotification-v4.yaml')
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  formats.default(ajv)
  ajv.addSchema(transfers, 'transfers')
  ajv.addSchema(webhooks, 'webhooks')
  const compiled = new Map<string, ValidateFunction>()

  function faultsOf(document: 'transfers' | 'webhooks', schema: Schema, value: unknown): string[] {
    const key = `${document} ${JSON.stringify(schema)}`
    const absolute = schema.$ref === undefined ? schema : { $ref: `${document}${schema.$ref}` }
    const validate = compiled.get(key) ?? ajv.compile(absolute)
    compiled.set(key, validate)
    return validate(value)
      ? []
      : (validate.errors ?? []).map(
          ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
        )
  }

  function operationOf({ method, path: asked }: Exchange): { template: string; operation: Operation } {
    for (const [template, methods] of Object.entries(transfers.paths)) {
      const operation = methods[method.toLowerCase()]
      const pattern = new RegExp(`^${template.replace(/\{[A-Za-z]+\}/g, '[^/]+')}$`)
      // Paths without parameters take precedence.
      if (
        operation !== undefined &&
        pattern.test(asked) &&
        !['/transfers/approve', '/transfers/cancel'].includes(template)
      )
        return { template, operation }
    }
    throw new Error(`The document has no ${method} ${asked}`)
  }

  function faultsOfRequest(exchange: Exchange): string[] {
    const { operation } = operationOf(exchange)
    const parameters = (operation.parameters ?? []).map(each =>
      each.$ref === undefined ? each : (transfers.components.parameters[each.$ref.split('/').at(-1) ?? ''] ?? each),
    )
    const inQuery = parameters.filter(each => each.in === 'query')
    const unknown = Object.keys(exchange.query).filter(name => !inQuery.some(each => each.name === name))
    const missing = inQuery.filter(({ name, required }) => required === true && exchange.query[name] === undefined)
    const { 'x-api-key': apiKey, 'idempotency-key': key = '', 'content-type': type } = exchange.headers
    return [
      ...(apiKey === undefined ? ['no X-API-Key'] : []),
      ...unknown.map(name => `the query parameter ${name} is unknown`),
      ...missing.map(({ name }) => `the query parameter ${name} is missing`),
      ...inQuery.flatMap(({ name, schema }) => {
        const text = exchange.query[name]
        return text === undefined ? [] : faultsOf('transfers', schema, isInteger(schema) ? Number(text) : text)
      }),
      ...(operation.requestBody === undefined
        ? []
        : [
            ...(/^[A-Z0-9]{1,64}$/.test(String(key)) ? [] : ['the idempotency key is malformed']),
            ...(type === 'application/json' ? [] : [`the content type is ${type}`]),
            ...faultsOf('transfers', operation.requestBody.content['application/json'].schema, exchange.body),
            ...faultsInWords(exchange.body),
          ]),
    ]
  }

  /** A response with an undocumented status is valid: the test asked for that fault. */
  function faultsOfAnswer(exchange: Exchange): string[] {
    const { operation } = operationOf(exchange)
    const body = exchange.status === null || exchange.isOdd ? undefined : operation.responses[exchange.status]
    if (body === undefined) return []
    return faultsOf('transfers', body.content['application/json'].schema, exchange.answer)
  }

  function faultsOfNotification(body: string): string[] {
    const { type } = JSON.parse(body)
    const webhook = webhooks.webhooks[type]
    if (webhook === undefined) return [`the document has no ${type}`]
    return faultsOf('webhooks', webhook.post.requestBody.content['application/json'].schema, JSON.parse(body))
  }

  return { faultsOfRequest, faultsOfAnswer, faultsOfNotification, refusesOddValues }

  /** Checks that the validator rejects something: one that accepts everything would prove nothing. */
  function refusesOddValues(exchange: Exchange, notification: string): void {
    const odd = (value: unknown) => ({ ...(value as object), odd: true })
    assert.notDeepEqual(faultsOfRequest({ ...exchange, body: odd(exchange.body) }), [])
    assert.notDeepEqual(faultsOfRequest({ ...exchange, body: { ...(exchange.body as object), amount: 1 } }), [])
    assert.notDeepEqual(faultsOfAnswer({ ...exchange, answer: odd(exchange.answer) }), [])
    assert.notDeepEqual(faultsOfNotification(JSON.stringify(odd(JSON.parse(notification)))), [])
  }
}

function isInteger(schema: Schema): boolean {
  return 'type' in schema && schema.type === 'integer'
}

/** Checks the rules that the document states only in prose: lengths and characters by kind of account. */
function faultsInWords(body: unknown): string[] {
  const {
    counterparty,
    description = '',
    referenceForBeneficiary = '',
    priorities = [],
    priority,
  } = body as {
    counterparty: {
      bankAccount: { accountHolder: { fullName: string }; accountIdentification: { type: string } }
    }
    description?: string
    referenceForBeneficiary?: string
    priorities?: string[]
    priority?: string
  }
  const { accountHolder, accountIdentification } = counterparty.bankAccount
  const lengthMax = accountIdentification.type === 'iban' ? 35 : 15
  return [
    ...(/^[A-Za-z0-9,.;:\-—/\\+&!?@()"' ]+$/.test(accountHolder.fullName) ? [] : ['fullName has invalid characters']),
    ...(/^[A-Za-z0-9/\-?:().,'+ ]*$/.test(description) ? [] : ['description has invalid characters']),
    ...(new RegExp(`^[A-Za-z0-9]{0,${lengthMax}}$`).test(referenceForBeneficiary)
      ? []
      : ['referenceForBeneficiary is malformed']),
    ...(priorities.length > 0 || priority !== undefined ? [] : ['a bank transfer has no priority']),
  ]
}
