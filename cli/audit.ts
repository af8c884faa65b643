import { Option } from 'commander'
import type { AuditEntryId, PartnerId } from '../packages/console/src/generated/operator.ts'
import { type Action, actions } from '../src/audit-log/actions.ts'
import type { WireMoney } from '../src/kernel/money.ts'
import { moneyInWords } from './money.ts'
import { addServerOptions, OperatorCommand, type OperatorOptions } from './operator-client.ts'
import { addPaging, nextPage } from './paging.ts'
import { table } from './print.ts'

const operations = () => import('../src/operators/audit-operations.ts')

export const auditCommand = addPaging(
  new OperatorCommand('audit', operations)
    .description('Show who changed what, by command or API request, newest first. See docs/operations/audit.md.')
    .option('--partner <partner>', 'only changes of this partner')
    .option('--resource <id>', 'only changes of this resource: a member id, a key id, a tier name, …')
    .option('--actor <actor>', 'only changes by this actor: an API key id, or user@host')
    .addOption(new Option('--action <action...>', 'only changes by these actions').choices(actions)),
  'auditEntry',
)
  .examples('audit', 'audit --partner par_… --action tier.set', 'audit --resource mem_… --json')
  .prints(
    (api, { partner, resource: resourceId, actor, action, before: after, take }: AuditOptions) => {
      const query = { resourceId, actor, actions: action, after, take }
      return partner === undefined ? api.listAuditEntries(query) : api.listPartnerAuditEntries(partner, query)
    },
    found =>
      table(
        found.entries.map(({ at, partnerId, actor: who, address, action: done, resourceId, details }) => ({
          at,
          partner: partnerId,
          who: address === null ? who : `${who} from ${address}`,
          action: done,
          resource: resourceId,
          details: detailsInWords({ ...details }),
        })),
      ) + nextPage(found.entries, found),
  )

addServerOptions(auditCommand)

type AuditOptions = OperatorOptions & {
  json?: boolean
  partner?: PartnerId
  resource?: string
  actor?: string
  action?: Action[]
  take: number
  before?: AuditEntryId
}

type Details = Record<string, unknown>

/** Changed fields as `tier: Silver → Gold`, other details as `name: value`. */
function detailsInWords({ before, after, changed, ...rest }: Details): string {
  const was = isState(before) ? before : {}
  const states = isState(after) ? Object.entries(after) : []
  const hidden = Array.isArray(changed) ? changed.filter(field => !visible.some(([name]) => name === field)) : []
  const known = new Set(states.map(([name]) => name))
  return [
    ...states.map(([name, value]) => `${name}: ${isState(before) ? `${inWords(was[name])} → ` : ''}${inWords(value)}`),
    ...hidden.filter(field => !known.has(String(field))).map(field => `${field} changed`),
    ...Object.entries(rest).flatMap(([name, value]) => (value === null ? [] : [`${name}: ${inWords(value)}`])),
  ].join(', ')
}

// Fields that `before` and `after` show under another name.
const visible = [['accountDetails', 'account']]

function isState(state: unknown): state is Details {
  return typeof state === 'object' && state !== null && !Array.isArray(state)
}

function inWords(value: unknown): string {
  if (isMoney(value)) return moneyInWords(value)
  return typeof value === 'string' ? value : JSON.stringify(value ?? null)
}

function isMoney(value: unknown): value is WireMoney {
  return typeof value === 'object' && value !== null && 'amount' in value && 'currency' in value
}
