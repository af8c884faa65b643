import { inWords } from '../kernel/money.ts'
import { countOf } from '../kernel/text.ts'
import { fileRailsOf } from '../payouts/channels/rail.ts'
import {
  type Check,
  edit,
  type Facts,
  floatsOfServed,
  hint,
  labelOf,
  missing,
  railsOf,
  served,
  warning,
} from './finding.ts'

const limits = {
  // A partner that rotates keys by hand needs a sprint or two.
  keyDaysMin: 30,
}

/** Each partner: tiers, rails for its currencies, float, keys and webhooks. */
export const partnerChecks: readonly Check<Facts>[] = [
  {
    name: 'partners',
    find: ({ partners, floats }) => {
      if (partners.length === 0)
        return missing({ sentence: 'There is no partner', command: 'midmonth partner create NAME' })
      return served(partners).flatMap(partner => [
        floats.some(each => each.partnerId === partner.id)
          ? null
          : missing({
              sentence: `${labelOf(partner)} has no tier, so it cannot have members`,
              command: `midmonth tier set ${partner.id} NAME --currency CURRENCY --fee AMOUNT --lower-limit AMOUNT --upper-limit AMOUNT`,
            }),
        partner.paused
          ? warning({
              sentence: `${labelOf(partner)} is paused, so its members cannot withdraw`,
              command: `midmonth partner resume ${partner.id}`,
            })
          : null,
      ])
    },
    fine: ({ partners }) => `${countOf(served(partners).length, 'partner')} with tiers, none paused`,
  },
  {
    name: 'currencies',
    find: facts => {
      const paid = new Set<string>(railsOf(facts).map(({ currency }) => currency))
      const command = facts.railsFile === '' ? 'export MIDMONTH_RAILS=/etc/midmonth/rails.json' : edit(facts.railsFile)
      return floatsOfServed(facts)
        .filter(({ currency }) => !paid.has(currency))
        .map(({ partner, currency }) =>
          missing({ sentence: `${labelOf(partner)} has a tier in ${currency}, but no rail pays ${currency}`, command }),
        )
    },
    fine: () => 'Every currency that a partner has a tier in has a rail',
  },
  {
    name: 'speeds',
    find: ({ partners, instantTiers, ...facts }) =>
      instantTiers.flatMap(({ partnerId, name, currency }) => {
        const partner = served(partners).find(({ id }) => id === partnerId)
        const rail = fileRailsOf(railsOf(facts)).find(each => each.currency === currency)
        if (partner === undefined || rail === undefined || rail.canBeInstant) return null
        return warning({
          sentence: `The tier ${name} of ${labelOf(partner)} asks for instant payouts, but the rail ${rail.name} cannot make them and pays at its own speed`,
          command: `midmonth tier set ${partnerId} ${JSON.stringify(name)} --payout-speed standard`,
        })
      }),
    fine: ({ instantTiers }) =>
      instantTiers.length === 0
        ? 'No tier asks for instant payouts'
        : 'Every tier that asks for instant payouts has a rail that can make them',
  },
  {
    name: 'accounts',
    find: ({ partners, railsFile, ...facts }) => {
      const known = new Set(partners.map(({ id }) => id))
      return fileRailsOf(railsOf(facts)).flatMap(({ name, debtors }) =>
        Object.keys(debtors)
          .filter(owner => owner !== 'default' && !known.has(owner))
          .map(owner =>
            warning({
              sentence: `The rail ${name} has an account for ${owner}, an unknown partner; the default account pays for all others`,
              command: edit(railsFile),
            }),
          ),
      )
    },
    fine: facts => accountsInWords(facts).join('; ') || 'No account pays for a partner yet',
  },
  {
    name: 'costs',
    find: ({ partners, floats }) =>
      partners.flatMap(partner =>
        floats
          .filter(each => each.partnerId === partner.id && each.uncovered > 0n)
          .map(({ currency, uncovered: amount }) =>
            warning({
              sentence: `The float of ${labelOf(partner)} lacks ${inWords({ amount, currency })} that the operator bears: transfer it to the account that pays, then record it`,
              command: `midmonth float cover ${partner.id} ${currency} ${amount} --reference REFERENCE`,
            }),
          ),
      ),
    fine: () => 'No float lacks money that the operator bears',
  },
  {
    name: 'float',
    find: facts =>
      floatsOfServed(facts).flatMap(({ partner, currency, free, floor }) => {
        const fund = `midmonth float fund ${partner.id} ${currency} AMOUNT --reference REFERENCE`
        const has = `${labelOf(partner)} has ${inWords({ amount: free, currency })} free`
        return [
          free <= 0n
            ? missing({ sentence: `${has}: transfer money to the account that pays, then record it`, command: fund })
            : floor !== null && free < floor
              ? missing({
                  sentence: `${has}, less than its floor of ${inWords({ amount: floor, currency })}, so withdrawals are refused`,
                  command: fund,
                })
              : null,
          floor === null
            ? warning({
                sentence: `${labelOf(partner)} has no floor in ${currency}, so withdrawals continue when the float is used up`,
                command: `midmonth float floor ${partner.id} ${currency} AMOUNT`,
              })
            : null,
        ]
      }),
    fine: () => 'Every float has free money and a floor',
  },
  {
    name: 'keys',
    find: ({ now, mode, partners, keys }) => {
      const soon = new Date(now.getTime() + limits.keyDaysMin * 86_400_000)
      return served(partners).flatMap(partner => {
        const own = keys.filter(({ partnerId }) => partnerId === partner.id)
        const command = `midmonth key create ${partner.id}`
        if (own.length === 0) return missing({ sentence: `${labelOf(partner)} has no valid ${mode} API key`, command })
        return own.flatMap(({ hint: key, expiresAt }) =>
          expiresAt === null || expiresAt > soon
            ? null
            : warning({
                sentence: `The key ${key} of ${labelOf(partner)} expires ${expiresAt.toISOString()}`,
                command,
              }),
        )
      })
    },
    fine: () => `Every partner has an API key that is valid for ${limits.keyDaysMin} days or more`,
  },
  {
    name: 'webhooks',
    find: ({ partners, endpoints }) =>
      served(partners).flatMap(partner => {
        const own = endpoints.filter(({ partnerId }) => partnerId === partner.id)
        if (own.length === 0)
          return hint({
            sentence: `${labelOf(partner)} has no webhook endpoint, so it learns of payments only by polling events`,
            command: `curl -H "x-api-key: $MIDMONTH_API_KEY" "$MIDMONTH_URL/v1/webhooks"`,
          })
        return own.flatMap(({ id, enabled, disabledReason, failingSince }) => {
          if (enabled && failingSince === null) return null
          const state = enabled ? `is failing since ${failingSince?.toISOString()}` : `is disabled (${disabledReason})`
          return warning({
            sentence: `The webhook endpoint ${id} of ${labelOf(partner)} ${state}; the partner can enable it again`,
            command: `curl -H "x-api-key: $MIDMONTH_API_KEY" "$MIDMONTH_URL/v1/webhooks/${id}/deliveries"`,
          })
        })
      }),
    fine: () => 'Every partner has webhook endpoints, and all work',
  },
]

function accountsInWords({ partners, floats, ...facts }: Pick<Facts, 'rails' | 'partners' | 'floats'>): string[] {
  return floatsOfServed({ partners, floats }).flatMap(({ partner, currency }) =>
    railsOf(facts)
      .filter(rail => rail.currency === currency)
      .map(rail => `${currency} of ${labelOf(partner)} is paid by ${rail.payerOf(partner.id)}`),
  )
}
