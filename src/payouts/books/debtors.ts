import type { Debtor } from '../formats/bank-files.ts'
import type { FileRailSettings } from './file-rail-settings.ts'

/** The key of the debtor that pays for a partner: the partner itself if it has its own account, or 'default'. */
export function debtorOf({ debtors }: FileRailSettings, partnerId: string): string {
  return Object.hasOwn(debtors, partnerId) ? partnerId : 'default'
}

/** The keys of the debtors that have an account, as a bank's file names it. */
export function debtorsOf({ debtors }: FileRailSettings, account: string): string[] {
  const compact = account.replaceAll(/[ -]/g, '').toUpperCase()
  return Object.entries(debtors)
    .filter(([, debtor]) => hasAccount(debtor, compact))
    .map(([key]) => key)
}

/** Whether an account, as a bank's file names it, pays for a partner. */
export function isAccountOf(
  rail: FileRailSettings,
  { account, partnerId }: { account: string; partnerId: string },
): boolean {
  return debtorsOf(rail, account).includes(debtorOf(rail, partnerId))
}

function hasAccount({ account: own }: Debtor, compact: string): boolean {
  return 'iban' in own ? own.iban === compact : compact.endsWith(`${own.sortCode}${own.accountNumber}`)
}
