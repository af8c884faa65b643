import { eventRoutes } from './events/routes.ts'
import { sheetRoutes } from './http/console/sheet-routes.ts'
import { registerOperations } from './http/register.ts'
import { serviceRoutes } from './http/routes.ts'
import { createServer } from './http/server/create-server.ts'
import { serveDocuments } from './http/server/documents.ts'
import { healthRoutes } from './http/server/health.ts'
import type { ApiContext, App } from './http/server/server.ts'
import { userRoutes } from './http/users/routes.ts'
import { memberImportRoutes } from './member-imports/routes.ts'
import { memberConsoleRoutes } from './members/console-routes.ts'
import { memberRoutes } from './members/routes.ts'
import { memberSessionRoutes } from './members/session-routes.ts'
import { operations } from './operations.ts'
import { financeRoutes } from './operators/finance-routes.ts'
import { floatRoutes } from './operators/float-routes.ts'
import { keyRoutes } from './operators/key-routes.ts'
import { type Installation, operationRoutes } from './operators/operation-routes.ts'
import { partnerRoutes } from './operators/partner-routes.ts'
import { payoutRoutes } from './operators/payout-routes.ts'
import { type RailsOfOperators, railRoutes } from './operators/rail-routes.ts'
import { operatorTierRoutes } from './operators/tier-routes.ts'
import { overviewRoutes } from './overview/routes.ts'
import { payCycleRoutes } from './pay-cycles/routes.ts'
import { payRunFileRoutes } from './pay-runs/file-routes.ts'
import { payRunRoutes } from './pay-runs/routes.ts'
import { payRunSummaryRoutes } from './pay-runs/summary-routes.ts'
import type { FileRailSettings } from './payouts/books/file-rail-settings.ts'
import type { Channel } from './payouts/channels/channel.ts'
import type { NotificationReceiver } from './payouts/channels/notifications.ts'
import { notificationRoutes } from './payouts/notification-routes.ts'
import { requestRoutes } from './requests/routes.ts'
import { settlementRoutes } from './settlements/routes.ts'
import { consoleFiles } from './site/console/routes.ts'
import { docsRoutes } from './site/docs/routes.ts'
import { memberPageFiles } from './site/member-page/routes.ts'
import { packageFiles } from './site/packages/routes.ts'
import { statementRoutes } from './statements/routes.ts'
import type { Fence } from './webhooks/fence.ts'
import { webhooksSection } from './webhooks/openapi.ts'
import { webhookRoutes } from './webhooks/routes.ts'
import { withdrawalRoutes } from './withdrawals/routes.ts'
import type { Tasks } from './worker/task.ts'

/**
 * Builds the API, ready to listen or to be called without a socket.
 * @param hasDocs whether it serves the documentation pages
 * @param rails the banks that pay immediately in a sandbox; by default the simulated bank
 * @param fileRails the rails that pay by files: their banks report payments, and a sandbox simulates their banks
 * @param adyenRails the rails that pay through Adyen’s API
 * @param installation facts about the installation that operators see
 * @param notifications receivers for the rails whose banks send notifications
 * @param moveMsMax how long a request waits while it moves a sandbox clock
 * @param fence the targets that webhook deliveries may be sent to; by default only public ones
 */
export async function buildApp(
  context: ApiContext,
  {
    hasDocs = true,
    fence,
    rails,
    moveMsMax,
    fileRails = [],
    adyenRails = [],
    installation = { railsFile: '', publicUrl: '', isEmbedded: false, auditAddressDays: 90, keyPlace: '' },
    notifications = [],
  }: {
    hasDocs?: boolean
    fence?: Fence
    rails?: Channel[] | undefined
    moveMsMax?: number | undefined
    fileRails?: readonly FileRailSettings[] | undefined
    adyenRails?: RailsOfOperators['adyenRails'] | undefined
    installation?: Installation | undefined
    notifications?: readonly NotificationReceiver[] | undefined
  } = {},
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
  consoleFiles(app, context)
  sheetRoutes(app)
  registerOperations(app, context, operations)
  memberRoutes(app, context)
  memberConsoleRoutes(app, context)
  memberImportRoutes(app, context)
  memberSessionRoutes(app, context)
  const payeeNames = [
    ...fileRails.map(({ currency, format }) => ({ currency, payeeName: format.payeeName })),
    ...adyenRails,
  ]
  withdrawalRoutes(app, context, {
    // The simulated bank accepts every character.
    payeeName: (currency, accountHolder) =>
      payeeNames.find(rail => rail.currency === currency)?.payeeName(accountHolder) ?? accountHolder,
    accountRefusal: (currency, account) =>
      fileRails.find(rail => rail.currency === currency)?.format.accountRefusal(account),
  })
  payRunRoutes(app, context)
  payRunFileRoutes(app, context)
  payRunSummaryRoutes(app, context)
  payCycleRoutes(app, context)
  settlementRoutes(app, context, {
    reportsArrivals: currency => fileRails.some(rail => rail.currency === currency && rail.format.readsStatements),
  })
  statementRoutes(app, context)
  eventRoutes(app, context)
  // Loaded on a sandbox only.
  if (context.mode === 'sandbox')
    (await import('./sandbox/routes.ts')).sandboxRoutes(app, context, {
      tasks: await sandboxTasks(context, rails),
      moveMsMax,
      fileRails,
    })
  overviewRoutes(app, context)
  requestRoutes(app, context)
  webhookRoutes(app, context, fence)
  userRoutes(app, context)
  notificationRoutes(app, notifications)
  partnerRoutes(app, context)
  operatorTierRoutes(app, context)
  floatRoutes(app, context, { fileRails })
  financeRoutes(app, context)
  keyRoutes(app, context)
  railRoutes(app, context, { fileRails, adyenRails })
  payoutRoutes(app, context, { fileRails })
  operationRoutes(app, context, { fileRails, adyenRails, ...installation })
  healthRoutes(app, { db: context.db, isWorking: null })
  serviceRoutes(app, context)
  await app.ready()
  return app
}

/** The worker's tasks, for sandbox operations that run them immediately. */
async function sandboxTasks({ db, now }: ApiContext, rails: Channel[] | undefined): Promise<Partial<Tasks>> {
  const { internalTasks, payoutTasks } = await import('./tasks.ts')
  const { simulatedBank } = await import('./payouts/channels/simulated/simulated-bank.ts')
  return { ...internalTasks, ...payoutTasks(rails ?? [simulatedBank({ db, now })]) }
}
