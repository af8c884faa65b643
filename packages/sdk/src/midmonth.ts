import { Client, type Settings } from './client.ts'
import type { FileSource } from './files.ts'
import { operations, type Resources } from './generated/operations.ts'
import { importMembers, type MemberImport, type MemberImportOptions } from './member-import.ts'
import { type UnwrapOptions, unwrapWebhook, type WebhookHeaders, webhookTestHeaders } from './webhooks.ts'

/** A client for one partner, authenticated by an API key. Keep the key on your server: it can move money. */
export class Midmonth implements Resources {
  declare readonly tiers: Resources['tiers']
  declare readonly members: Resources['members'] & {
    /** Uploads the complete list of members, waits for the job and returns the result. */
    import(file: FileSource, options?: MemberImportOptions): Promise<MemberImport>
  }
  /** Short-lived tokens for pages in members' browsers. */
  declare readonly memberSessions: Resources['memberSessions']
  declare readonly memberJobs: Resources['memberJobs']
  declare readonly withdrawals: Resources['withdrawals']
  declare readonly payRuns: Resources['payRuns']
  declare readonly payCycles: Resources['payCycles']
  declare readonly events: Resources['events']
  declare readonly webhooks: Resources['webhooks'] & {
    /** Verifies a delivery and returns its event; see `unwrapWebhook`. */
    unwrap: typeof unwrapWebhook
    /** Signs a body as Midmonth does, to test your receiver. */
    testHeaders: typeof webhookTestHeaders
  }
  declare readonly overview: Resources['overview']
  declare readonly requests: Resources['requests']
  declare readonly idempotencyKeys: Resources['idempotencyKeys']
  declare readonly service: Resources['service']
  /** Moves the clock and controls the simulated bank. A live installation responds with 404. */
  declare readonly sandbox: Resources['sandbox']

  constructor(settings: Settings) {
    const resources = resourcesOf(new Client(settings))
    const { now } = settings
    Object.assign(this, resources)
    this.members = {
      ...resources.members,
      import: (file, options) => importMembers(resources.memberJobs, file, options),
    }
    this.webhooks = {
      ...resources.webhooks,
      unwrap: (body: string | Uint8Array, headers: WebhookHeaders, secret: string, options?: UnwrapOptions) =>
        unwrapWebhook(body, headers, secret, { now, ...options }),
      testHeaders: webhookTestHeaders,
    }
  }
}

type Tree = { [name: string]: Tree | ((...given: unknown[]) => unknown) }

/** Builds the methods from the table. Table and types are generated together, and a test calls every method. */
export function resourcesOf(client: Client): Resources {
  const root: Tree = {}
  for (const [name, operation] of Object.entries(operations)) {
    const steps = name.split('.')
    const method = steps.pop() ?? ''
    let resource = root
    for (const step of steps) {
      resource[step] ??= {}
      resource = resource[step] as Tree
    }
    resource[method] = (...given: unknown[]) => client.call(operation, given)
  }
  return root as Tree & Resources
}
