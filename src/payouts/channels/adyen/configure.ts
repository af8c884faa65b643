import { channelType, type Rail, type RailFinding } from '../rail.ts'
import { faultsOfSecrets } from './secrets.ts'
import { AdyenRail, type AdyenSettings, faultsOf, toAdyenSettings } from './settings.ts'

export const adyen = channelType({
  schema: AdyenRail,
  faults: faultsOf,
  configure: (given, mode) => toRail(toAdyenSettings(given, mode)),
})

export function toRail(settings: AdyenSettings): Rail {
  const { name, currency, automatic, notifications, balanceAccountId, payeeName } = settings
  return {
    name,
    currency,
    automatic,
    reports: { arrivals: false, returns: true },
    files: null,
    listedUntil: async db => await (await import('./catch-up.ts')).readListedUntil(db, settings),
    summary: `Adyen Transfers, ${notifications === null ? 'polled' : 'with notifications'}`,
    payeeName,
    // The vendor alone decides, when a payment is requested.
    accountRefusal: () => undefined,
    payerOf: () => `the balance account …${balanceAccountId.slice(-4)} at Adyen`,
    check: () => check(settings),
    openReceiver:
      notifications === null
        ? null
        : async context =>
            (await import('./notifications.ts')).adyenNotifications({ ...context, settings, notifications }),
    openChannel: async ({ db, now }) => (await import('./channel.ts')).adyenChannel({ db, now, settings }),
  }
}

async function check(settings: AdyenSettings): Promise<RailFinding[]> {
  const { name, notifications } = settings
  const faults = await faultsOfSecrets(settings)
  return [
    ...faults.map(fault => ({
      level: 'missing' as const,
      sentence: `The rail ${name} cannot pay: ${fault}`,
      command: null,
    })),
    ...(notifications === null
      ? [
          {
            level: 'warning' as const,
            sentence: `The rail ${name} receives no notifications, so a returned payment is noticed hours later`,
            command: null,
          },
        ]
      : []),
    {
      level: 'hint',
      sentence: `The rail ${name} has not been run against Adyen’s live service by its authors; pay one cent first`,
      command: 'midmonth payouts exceptions list',
    },
  ]
}
