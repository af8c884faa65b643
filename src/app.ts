import { registerOperations } from './http/register.ts'
import { createServer } from './http/server/create-server.ts'
import { serveDocuments } from './http/server/documents.ts'
import { metricsRoute } from './http/server/metrics-route.ts'
import type { ApiContext, App } from './http/server/server.ts'
import { logoRoutes } from './http/users/logo-routes.ts'
import { signInContext } from './http/users/operation-context.ts'
import type { Currency } from './kernel/money.ts'
import { defaultRetention, type Retention } from './kernel/retention.ts'
import { memberTemplateRoutes } from './members/template-routes.ts'
import { type OperationContext, operations } from './operations.ts'
import type { Installation } from './operators/operation-context.ts'
import type { Channel } from './payouts/channels/channel.ts'
import type { NotificationReceiver } from './payouts/channels/notifications.ts'
import { banksOn, fileRailsOf, type Rail } from './payouts/channels/rail.ts'
import { notificationRoutes } from './payouts/notification-routes.ts'
import { openSimulatedBank } from './payouts/registry.ts'
import { consoleFiles } from './site/console/routes.ts'
import { docsRoutes } from './site/docs/routes.ts'
import { memberPageFiles } from './site/member-page/routes.ts'
import { packageFiles } from './site/packages/routes.ts'
import { Fence } from './webhooks/fence.ts'
import { webhooksSection } from './webhooks/openapi.ts'
import { withdrawalBatches } from './withdrawals/batches.ts'
import type { Tasks } from './worker/task.ts'

type AppOptions = {
  hasDocs?: boolean
  fence?: Fence
  rails?: readonly Rail[] | undefined
  channels?: Channel[] | undefined
  moveMsMax?: number | undefined
  installation?: Installation | undefined
}

/**
 * Builds the API, ready to listen or to be called without a socket.
 * @param hasDocs whether it serves the documentation pages
 * @param rails the configured rails; a sandbox simulates the banks of those that pay by files
 * @param channels the channels that pay immediately in a sandbox; by default the simulated bank
 * @param installation facts about the installation that operators see
 * @param moveMsMax how long a request waits while it moves a sandbox clock
 * @param fence the targets that webhook deliveries may be sent to; by default only public ones
 */
export async function buildApp(
  context: ApiContext,
  {
    hasDocs = true,
    fence = new Fence({ allowsHttp: context.mode === 'sandbox', allowsLoopback: false, refusedPorts: [] }),
    rails = [],
    channels,
    // A move of a clock that takes longer is answered with 202, and continues.
    moveMsMax = 20_000,
    installation = { railsFile: '', publicUrl: '', isEmbedded: false, retention: defaultRetention, keyName: '' },
  }: AppOptions = {},
): Promise<App> {
  const app = createServer(context)
  const documents = serveDocuments(app, { webhooks: webhooksSection() })
  if (hasDocs)
    docsRoutes(app, {
      ...{ mode: context.mode, publicUrl: context.publicUrl },
      ...{ openapi: documents.partners, operators: documents.operators },
    })
  packageFiles(app)
  memberPageFiles(app)
  memberTemplateRoutes(app)
  consoleFiles(app)
  const railOf = (currency: Currency) => rails.find(rail => rail.currency === currency)
  const banks = banksOn(rails, context.bankOf)
  const operationContext: OperationContext = {
    ...context,
    ...signInContext(context),
    isDraining: () => app.isDraining,
    isWorking: null,
    fence,
    banks,
    batches: withdrawalBatches({ ...context, banks }),
    rails,
    installation,
    reportsArrivals: currency => railOf(currency)?.reports.arrivals ?? false,
    // The simulated bank accepts every character.
    payeeName: (currency, accountHolder) => railOf(currency)?.payeeName(accountHolder) ?? accountHolder,
  }
  registerOperations(app, operationContext, operations)
  const { retention } = installation
  if (context.mode === 'sandbox') await registerSandbox(app, context, { channels, moveMsMax, rails, retention })
  logoRoutes(app, context)
  metricsRoute(app, context)
  notificationRoutes(app, await openReceivers(context, rails))
  await app.ready()
  return app
}

// Loaded on a sandbox only.
type SandboxOptions = {
  channels: Channel[] | undefined
  moveMsMax: number
  rails: readonly Rail[]
  retention: Retention
}

async function registerSandbox(
  app: App,
  context: ApiContext,
  { channels, moveMsMax, rails, retention }: SandboxOptions,
): Promise<void> {
  const { ClockDriver, refuseProvoked, sandboxOperations } = await import('./sandbox/operations.ts')
  const tasks = await sandboxTasks(context, { channels, retention })
  const clockDriver = new ClockDriver({ ...context, tasks })
  app.addHook('preClose', async () => clockDriver.stop())
  // Only after the key was accepted.
  app.addHook('preHandler', async ({ headers, partner }) => {
    if (partner !== undefined) refuseProvoked(headers)
  })
  const forgetKeys = (partnerId: string) => app.forgetKeys(partnerId)
  const sandbox = { ...context, tasks, clockDriver, moveMsMax, fileRails: fileRailsOf(rails), forgetKeys }
  registerOperations(app, sandbox, sandboxOperations)
}

/** The worker's tasks, for sandbox operations that run them immediately. */
async function sandboxTasks(
  { db, now }: ApiContext,
  { channels, retention }: { channels: Channel[] | undefined; retention: Retention },
): Promise<Partial<Tasks>> {
  const { internalTasks, payoutTasks, retentionTasks } = await import('./tasks.ts')
  const payouts = payoutTasks(channels ?? [await openSimulatedBank({ db, now })])
  return { ...internalTasks, ...payouts, ...retentionTasks(retention) }
}

async function openReceivers(context: ApiContext, rails: readonly Rail[]): Promise<NotificationReceiver[]> {
  return await Promise.all(rails.flatMap(({ openReceiver }) => (openReceiver === null ? [] : [openReceiver(context)])))
}
