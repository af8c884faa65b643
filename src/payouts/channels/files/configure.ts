import type { FileRailSettings } from '../../books/file-rail-settings.ts'
import { channelType, type Rail } from '../rail.ts'
import {
  faultsOf,
  type GivenFileRail,
  SepaFileRail,
  Standard18FileRail,
  toSettings,
  UkPain001FileRail,
} from './settings.ts'

const functions = {
  faults: faultsOf,
  configure: (given: GivenFileRail) => toRail(toSettings(given)),
}
export const sepaFile = channelType({ schema: SepaFileRail, ...functions })
export const standard18File = channelType({ schema: Standard18FileRail, ...functions })
export const ukPain001File = channelType({ schema: UkPain001FileRail, ...functions })

export function toRail(settings: FileRailSettings): Rail {
  const { name, currency, automatic, format, debtors, delivery } = settings
  return {
    name,
    currency,
    automatic,
    reports: { arrivals: format.readsStatements, returns: format.readsReturns },
    files: settings,
    summary: `${format.name}, ${delivery === null ? 'carried by hand' : 'delivered by the worker'}`,
    payeeName: accountHolder => format.payeeName(accountHolder),
    accountRefusal: account => format.accountRefusal(account),
    payerOf(partnerId) {
      const { name: payer, account } = debtors[partnerId] ?? debtors.default
      const number = 'iban' in account ? account.iban : account.accountNumber
      return `${payer}, account …${number.slice(-4)}`
    },
    // Folders and servers are tried by the worker, which alone can reach them.
    check: async () => [],
    openReceiver: null,
    openChannel: async ({ db, now }) => (await import('./channel.ts')).fileChannel({ db, now, settings }),
  }
}
