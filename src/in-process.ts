import type * as auditLog from './audit-log/audit-log.ts'
import { recordDisclosures } from './audit-log/disclosures.ts'
import { type Declaration, describe } from './contract/description.ts'
import { mediaTypes } from './contract/media-types.ts'
import { compileValidation } from './contract/validation.ts'
import type { Db, Tx } from './database/database.ts'
import { BaseCall, type CallFacts } from './http/call.ts'
import type { Call, Download, Operation, OperationResponse } from './http/operation.ts'
import { recordAudit } from './http/record-audit.ts'
import type { ApiContext } from './http/server/server.ts'
import type { Operator } from './partners/operator-keys.ts'

/** Who calls operations in this process: an operator at the command line, whom no header can claim to be. */
export type Caller = { operator: Operator; actor: auditLog.Actor }

type Given = { params: unknown; query: Record<string, unknown>; body: unknown; prefersCsv?: boolean }

/**
 * Carries out an operation for operators in this process, without a server: the same function, with the same validation and audit
 * log, but without an idempotency key.
 * @returns the response as its JSON would be read, or the file
 * @throws Problem as over HTTP
 */
export async function callInProcess<Context extends ApiContext>(
  operation: Operation<Context>,
  given: Given,
  { context, caller }: { context: Context; caller: Caller },
): Promise<{ status: number; body: unknown } | Download> {
  const declared = describe(operation as Declaration, { credential: 'key', isDeprecated: false })
  const { query, body } = await compileValidation(declared)({
    ...given,
    bodyFaults: [],
    disconnectSignal: () => AbortSignal.any([]),
    fingerprintStart: undefined,
  })
  const now = context.now()
  const headers = { accept: given.prefersCsv ? mediaTypes.csv : undefined, prefer: 'return=representation' }
  const facts = { params: given.params, query, body, headers, now, receivedAt: now, clockOffsetMs: 0 }
  const call = new CommandCall(context, { ...facts, operator: caller.operator }, caller.actor)
  const done = await run(operation, call, context)
  if ('parts' in done) return done
  const text = 'content-type' in (done.headers ?? {})
  return {
    status: done.status ?? operation.success.status ?? 200,
    body: text ? done.body : JSON.parse(JSON.stringify(done.body)),
  }
}

async function run<Context extends ApiContext>(
  operation: Operation<Context>,
  call: Call<unknown, unknown, unknown, Context>,
  { db }: Context,
): Promise<OperationResponse | Download> {
  const write = async (work: (tx: Tx) => Promise<OperationResponse>, on: Db = db) =>
    await on.transaction().execute(async tx => {
      const response = await work(tx)
      await recordAudit(tx, response, { actor: call.actor, partnerId: null, now: call.now })
      return response
    })
  const disclose = async ({ disclosed }: Pick<OperationResponse, 'disclosed'>) => {
    if (disclosed === undefined) return
    const { partnerId = null, ...shown } = disclosed
    const disclosure = { partnerId, actor: call.actor, disclosed: shown, now: call.now }
    await recordDisclosures(db, [disclosure], { isDurable: true })
  }
  const read = async (work: (reader: Db) => Promise<OperationResponse>) => {
    const response = await work(db)
    await disclose(response)
    return response
  }
  if ('read' in operation) return await read(reader => operation.read(reader, call))
  if ('write' in operation) return await write(tx => operation.write(tx, call))
  if ('batch' in operation) throw new Error(`${operation.id} runs over HTTP only`)
  if ('start' in operation) {
    const result = await db.transaction().execute(tx => operation.start(tx, call, undefined))
    const ended = await result()
    return await write(tx => operation.respond(tx, call, ended))
  }
  const { done } = await operation.run(call, {
    write: async (work, on) => ({ done: await write(work, on) }),
    read: async work => ({ done: await read(work) }),
    source: async () => db,
    download: async file => {
      await disclose(file)
      return { done: file }
    },
  })
  return done as OperationResponse | Download
}

class CommandCall<Context> extends BaseCall<Context> {
  readonly actor: auditLog.Actor
  readonly ownOrigin = ''
  readonly signal = AbortSignal.any([])

  constructor(context: Context, facts: CallFacts, actor: auditLog.Actor) {
    super(context, facts)
    this.actor = actor
  }

  get browser(): never {
    throw new Error('A command has no browser')
  }
}
