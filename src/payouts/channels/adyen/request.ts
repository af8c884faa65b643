import type { BankAccount } from '../../../bank-accounts/rules.ts'
import { ukRefusal } from '../../formats/uk-payments.ts'
import type { Payment } from '../../payments/payment.ts'
import type { AdyenSettings } from './settings.ts'

type Payable = Pick<Payment, 'account' | 'netAmount'>
type Transfer = Payable & Pick<Payment, 'reference' | 'speed'>

/** Why a payment cannot be requested; undefined if it can. The money goes back to the member with this reason. */
export function refusalOf(
  { currency }: Pick<AdyenSettings, 'currency'>,
  { account, netAmount }: Payable,
): string | undefined {
  if (currency === 'EUR') return 'iban' in account ? undefined : 'A SEPA payment needs an IBAN'
  return ukRefusal('faster-payments')({ account, amount: netAmount.amount })
}

/** The body of `POST /transfers`. Source: TransferInfo in the OpenAPI document of the Transfers API, version 4. */
export function transferInfo(
  settings: Pick<AdyenSettings, 'balanceAccountId' | 'priorities' | 'payeeName'>,
  { reference, netAmount, account, speed }: Transfer,
) {
  return {
    amount: { value: Number(netAmount.amount), currency: netAmount.currency },
    balanceAccountId: settings.balanceAccountId,
    category: 'bank',
    counterparty: {
      bankAccount: {
        accountHolder: { type: 'individual', fullName: settings.payeeName(account.accountHolder) },
        accountIdentification: identificationOf(account),
      },
    },
    priorities: prioritiesAt(speed, settings),
    reference,
    // What the payee reads. For a UK account `referenceForBeneficiary` has 15 characters, one too few.
    description: reference,
    ...('iban' in account ? { referenceForBeneficiary: reference } : {}),
  }
}

function identificationOf(account: BankAccount) {
  if ('iban' in account) return { type: 'iban', iban: account.iban }
  return { type: 'ukLocal', sortCode: account.sortCode, accountNumber: account.accountNumber }
}

/** A tier that asks for no speed takes all priorities of the rail, a standard one pays for none of the faster ones. */
function prioritiesAt(speed: Payment['speed'], { priorities }: Pick<AdyenSettings, 'priorities'>): readonly string[] {
  if (speed !== 'standard') return priorities
  const slower = priorities.filter(each => each !== 'instant' && each !== 'fast')
  return slower.length === 0 ? ['regular'] : slower
}
