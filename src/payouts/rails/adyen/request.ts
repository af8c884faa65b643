import type { BankAccount } from '../../../bank-accounts/rules.ts'
import type { Payment } from '../../rail.ts'
import { epcName } from '../sepa/names.ts'
import { ukPaymentMax } from '../uk-payments.ts'
import type { AdyenSettings } from './settings.ts'

type Payable = Pick<Payment, 'account' | 'amount'>

/** Why a payment cannot be requested; undefined if it can. The money goes back to the member with this reason. */
export function refusalOf(
  { currency }: Pick<AdyenSettings, 'currency'>,
  { account, amount }: Payable,
): string | undefined {
  if (currency === 'EUR') return 'iban' in account ? undefined : 'A SEPA payment needs an IBAN'
  if (!('sortCode' in account)) return 'This bank pays to a sort code and an account number only'
  return amount.amount > ukPaymentMax['faster-payments']
    ? 'The amount is above the limit of the payment scheme'
    : undefined
}

/** The body of `POST /transfers`. Source: TransferInfo in the OpenAPI document of the Transfers API, version 4. */
export function transferInfo(
  { balanceAccountId, priorities }: Pick<AdyenSettings, 'balanceAccountId' | 'priorities'>,
  { reference, amount, account }: Payable & Pick<Payment, 'reference'>,
) {
  return {
    amount: { value: Number(amount.amount), currency: amount.currency },
    balanceAccountId,
    category: 'bank',
    counterparty: {
      // Its names allow what the EPC allows, and some more.
      bankAccount: {
        accountHolder: { type: 'individual', fullName: epcName(account.accountHolder) },
        accountIdentification: identificationOf(account),
      },
    },
    priorities,
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
