import { type TSchema, Type } from 'typebox'
import type { Db } from '../../database/database.ts'
import { describeNewerSchema, readSchemaState } from '../../database/migrations.ts'
import { problem } from '../../kernel/errors.ts'
import { limits as heartbeatLimits, listWorkers } from '../../worker/heartbeats.ts'
import { operation } from '../described-route.ts'
import { createServer } from './create-server.ts'
import type { ApiContext, App } from './server.ts'

const tag = 'Service'
const strict = { additionalProperties: false }
const Status = Type.Object({ status: Type.Literal('ok') }, { title: 'ServiceStatus', ...strict })

const check = <T extends TSchema>(status: T) =>
  Type.Object(
    { status, message: Type.Optional(Type.String({ description: 'The problem, and what to do about it.' })) },
    strict,
  )
const Ok = Type.Literal('ok')

const Readiness = Type.Object(
  {
    status: Type.Union([Ok, Type.Literal('warning')], {
      description: 'The worst result of the checks. A warning does not make the process unready.',
    }),
    checks: Type.Object(
      { database: check(Ok), migrations: check(Ok), worker: check(Type.Union([Ok, Type.Literal('warning')])) },
      strict,
    ),
  },
  { title: 'Readiness', ...strict },
)

type Check = { status: 'ok' | 'warning'; message?: string }

const limits = {
  // Load balancers give a probe a few seconds; a database that takes longer than this cannot serve requests.
  answerMsMax: 2_000,
}

/**
 * Registers the two health probes.
 * @param isWorking whether the worker of this process is running; null in a process without a worker, which checks whether any
 *   worker is alive
 */
export function healthRoutes(app: App, { db, isWorking }: { db: Db; isWorking: (() => boolean) | null }): void {
  app.get(
    '/livez',
    {
      schema: operation({
        id: 'getLiveness',
        tag,
        summary: 'Is the process alive?',
        public: true,
        success: { status: 200, description: 'The process is alive.', schema: Status },
      }),
    },
    async () => ({ status: 'ok' as const }),
  )

  // Probes need no key, so all concurrent probes share one query.
  let looking: Promise<Check> | undefined

  app.get(
    '/readyz',
    {
      // A probe is repeated within seconds, and gives up sooner than a client.
      config: { answerMsMax: limits.answerMsMax, isNeverShed: true },
      schema: operation({
        id: 'getReadiness',
        tag,
        summary: 'Can the process serve requests?',
        description:
          'Checks the database and its migrations. If the response is 503, send requests elsewhere and try again later. If no worker has been alive for a minute, the response is 200 with a warning, because the API can still serve requests.',
        public: true,
        success: { status: 200, description: 'The process can serve requests.', schema: Readiness },
        problems: ['ServiceUnavailable'],
      }),
    },
    async request => {
      if (app.isDraining) throw notReady('The process is stopping')
      looking ??= look().finally(() => {
        looking = undefined
      })
      const worker = await looking.catch(error => {
        request.log.warn({ err: error, requestId: request.id }, 'not ready')
        throw notReady(error instanceof Unready ? error.message : 'database: no reply')
      })
      const fine = { status: 'ok' as const }
      return { status: worker.status, checks: { database: fine, migrations: fine, worker } }
    },
  )

  async function look(): Promise<Check> {
    const { promise: tooLate, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => reject(new Unready('database: no reply in time')), limits.answerMsMax)
    try {
      return await Promise.race([lookAtDatabase(), tooLate])
    } finally {
      clearTimeout(timer)
    }
  }

  async function lookAtDatabase(): Promise<Check> {
    const state = await readSchemaState(db)
    if (state.pending.length > 0)
      throw new Unready(`migrations: ${state.pending.join(', ')} missing; run midmonth migrate`)
    const tooNew = await describeNewerSchema(state)
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
}

/** An app with only the health probes, for a process that runs only the worker. */
export async function buildHealthApp(
  context: Omit<ApiContext, 'batchDb' | 'lanes' | 'withCopying' | 'bankOf'>,
  { isWorking }: { isWorking: () => boolean },
): Promise<App> {
  const app = createServer(context)
  healthRoutes(app, { db: context.db, isWorking })
  await app.ready()
  return app
}

class Unready extends Error {}

function notReady(message: string) {
  return problem('ServiceUnavailable', message, {}, { 'retry-after': '1' })
}
