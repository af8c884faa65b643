import { type TSchema, Type } from 'typebox'
import type { Db } from '../../database/database.ts'
import { describeNewerSchema, readSchemaState } from '../../database/migrations.ts'
import { problem } from '../../kernel/errors.ts'
import { namedObject, strictObject } from '../../kernel/schemas.ts'
import { within } from '../../kernel/within.ts'
import { limits as heartbeatLimits, listWorkers } from '../../worker/heartbeats.ts'
import { named, operationsOn } from '../operation.ts'
import { registerOperations } from '../register.ts'
import { createServer } from './create-server.ts'
import { metricsRoute } from './metrics-route.ts'
import type { ApiContext, App } from './server.ts'

const Status = namedObject('ServiceStatus', { status: Type.Literal('ok') })

const check = <T extends TSchema>(status: T) =>
  strictObject({
    status,
    message: Type.Optional(Type.String({ description: 'The problem, and what to do about it.' })),
  })
const Ok = Type.Literal('ok')

const Readiness = namedObject('Readiness', {
  status: Type.Union([Ok, Type.Literal('warning')], {
    description: 'The worst result of the checks. A warning does not make the process unready.',
  }),
  checks: strictObject({
    database: check(Ok),
    migrations: check(Ok),
    worker: check(Type.Union([Ok, Type.Literal('warning')])),
  }),
})

type Check = { status: 'ok' | 'warning'; message?: string }

const limits = {
  // Load balancers give a probe a few seconds; a database that takes longer than this cannot serve requests.
  answerMsMax: 2_000,
}

/** What the health probes run on. */
export type HealthContext = Pick<ApiContext, 'db' | 'log'> & {
  /** Whether the process is about to stop. */
  isDraining: () => boolean
  /** Whether the worker of this process is running; null in a process without a worker, which checks whether any worker is alive. */
  isWorking: (() => boolean) | null
}

const operation = operationsOn<HealthContext>().operationWith({ tag: 'Service' })

const getLiveness = operation({
  route: 'GET /livez',
  isPublic: true,
  sdk: 'service.getLiveness',
  summary: 'Is the process alive?',
  success: { description: 'The process is alive.', schema: Status },
  read: async () => ({ body: { status: 'ok' } }),
})

const getReadiness = operation({
  route: 'GET /readyz',
  isPublic: true,
  // A probe is repeated within seconds, and gives up sooner than a client.
  answerMsMax: limits.answerMsMax,
  isNeverShed: true,
  sdk: 'service.getReadiness',
  summary: 'Can the process serve requests?',
  description:
    'Checks the database and its migrations. If the response is 503, send requests elsewhere and try again later. If no worker has been alive for a minute, the response is 200 with a warning, because the API can still serve requests.',
  success: { description: 'The process can serve requests.', schema: Readiness },
  problems: ['ServiceUnavailable'],
  async read(_, { context }) {
    if (context.isDraining()) throw notReady('The process is stopping')
    const worker = await sharedLook(context).catch(error => {
      context.log.warn({ err: error }, 'not ready')
      throw notReady(error instanceof Unready ? error.message : 'database: no reply')
    })
    const fine = { status: 'ok' }
    return { body: { status: worker.status, checks: { database: fine, migrations: fine, worker } } }
  },
})

export const healthOperations = named({ getLiveness, getReadiness })

const looking = new WeakMap<Db, Promise<Check>>()

/** Probes need no key, so all concurrent probes share one query. */
async function sharedLook(context: HealthContext): Promise<Check> {
  const { db } = context
  const late = () => new Unready('database: no reply in time')
  const running =
    looking.get(db) ?? within(limits.answerMsMax, lookAtDatabase(context), late).finally(() => looking.delete(db))
  looking.set(db, running)
  return await running
}

async function lookAtDatabase({ db, isWorking }: HealthContext): Promise<Check> {
  const state = await readSchemaState(db)
  if (state.pending.length > 0)
    throw new Unready(`migrations: ${state.pending.join(', ')} missing; run midmonth migrate`)
  const tooNew = describeNewerSchema(state)
  if (tooNew !== undefined) throw new Unready(`migrations: ${tooNew}`)
  if (isWorking !== null) {
    if (!isWorking()) throw new Unready('worker: lost its queue and is being restarted')
    return { status: 'ok' }
  }
  const workers = await listWorkers(db)
  if (workers.some(({ isAlive }) => isAlive)) return { status: 'ok' }
  const message = `No worker has been alive for ${heartbeatLimits.silenceSecondsMax} s, so nothing is paid out; run midmonth start --worker`
  return { status: 'warning', message }
}

/** An app with only the health probes and the metrics, for a process that runs only the worker. */
export async function buildHealthApp(
  context: Omit<ApiContext, 'batchDb' | 'withCopying' | 'bankOf'>,
  { isWorking }: { isWorking: () => boolean },
): Promise<App> {
  const app = createServer(context)
  registerOperations(app, { ...context, isDraining: () => app.isDraining, isWorking }, healthOperations)
  metricsRoute(app, context)
  await app.ready()
  return app
}

class Unready extends Error {}

function notReady(message: string) {
  return problem('ServiceUnavailable', message, {}, { 'retry-after': '1' })
}
