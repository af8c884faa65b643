import { Command, Option } from 'commander'
import * as auditLog from '../src/audit-log/audit-log.ts'
import { inWords as moneyInWords, type WireMoney } from '../src/kernel/money.ts'
import { findState } from '../src/partners/partners.ts'
import { examples } from './help.ts'
import { addPaging, type Paging, pageOf } from './paging.ts'
import { printResult, table } from './print.ts'
import { withDatabase } from './with-database.ts'

export const auditCommand = addPaging(
  new Command('audit')
    .option('--partner <partner>', 'only changes of this partner')
    .option('--resource <id>', 'only changes of this resource: a member id, a key id, a tier name, …')
    .option('--actor <actor>', 'only changes by this actor: an API key id, or user@host')
    .addOption(new Option('--action <action...>', 'only changes by these actions').choices(auditLog.actions)),
  'auditEntry',
)
  .option('--json', 'print JSON')
  .addHelpText('after', examples('audit', 'audit --partner par_… --action tier.set', 'audit --resource mem_… --json'))
  .action(async ({ json, partner, resource, actor, action, ...paging }: AuditOptions) => {
    const filter = {
      ...(partner === undefined ? {} : { partnerId: partner }),
      ...(resource === undefined ? {} : { resourceId: resource }),
      ...(actor === undefined ? {} : { actor }),
      ...(action === undefined ? {} : { actions: action }),
    }
    const found = await withDatabase(async db => {
      if (partner !== undefined) await findState(db, partner)
      return await auditLog.list(db, { filter, before: paging.before, take: paging.take + 1 })
    })
    const { shown, hasMore, more } = pageOf(found, paging)
    printResult(
      { json },
      {
        value: { entries: shown, hasMore },
        text: () =>
          table(
            shown.map(({ at, partnerId, actor: who, address, action: done, resourceId, details }) => ({
              at: at.toISOString(),
              partner: partnerId,
              who: address === null ? who : `${who} from ${address}`,
              action: done,
              resource: resourceId,
              details: detailsInWords(details),
            })),
          ) + more,
      },
    )
  })

type AuditOptions = Paging & {
  json?: boolean
  partner?: string
  resource?: string
  actor?: string
  action?: auditLog.Action[]
}

/** Changed fields as `tier: Silver → Gold`, other details as `name: value`. */
function detailsInWords({ before, after, changed, ...rest }: auditLog.Details): string {
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

function isState(state: unknown): state is auditLog.Details {
  return typeof state === 'object' && state !== null && !Array.isArray(state)
}

function inWords(value: unknown): string {
  if (isMoney(value)) return moneyInWords({ amount: BigInt(value.amount), currency: value.currency })
  return typeof value === 'string' ? value : JSON.stringify(value ?? null)
}

function isMoney(value: unknown): value is WireMoney {
  return typeof value === 'object' && value !== null && 'amount' in value && 'currency' in value
}
