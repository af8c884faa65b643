import type { Restriction } from '../../members/restrictions.ts'
import type { GivenReasons } from '../formats/bank-files.ts'

/** What follows from a bank's reason. */
export type NextStep =
  /** The account is wrong: give the money back, and accept no withdrawal until the account is changed. */
  | 'give_back_and_block_account'
  /** Give the money back, and hold the member for manual review. */
  | 'give_back_and_review'
  /** The reason is ours or the bank's, not the member's: give the money back. */
  | 'give_back'
  /** The account that pays lacked the money. The bank may still pay once it is topped up, so a person decides. */
  | 'decide_once_funded'
  /** The bank has seen the payment before and may have paid it, so a person decides. */
  | 'decide'

export type Reason = { next: NextStep; meaning: string; isKnown: boolean }

/** Looks up a bank's reason code. An unknown or missing code is reviewed. */
export function reasonOf(code: string | null): Reason {
  const known = code === null ? undefined : reasons.get(code)
  if (known !== undefined) return { ...known, isKnown: true }
  const meaning = code === null ? 'The bank gave no reason' : 'The reason is not a known code'
  return { next: 'give_back_and_review', meaning, isKnown: false }
}

/** What follows from an answer with any number of reasons. A duplicate wins, even if only the text says so. */
export function nextStepOf(given: GivenReasons): NextStep {
  return namesDuplicate(given) ? 'decide' : reasonOf(gravestOf(given.reasonCodes)).next
}

/** The code that decides among all codes of an answer; null if there is none. */
export function gravestOf(codes: readonly string[]): string | null {
  return codes.toSorted((one, other) => gravityOf(one) - gravityOf(other))[0] ?? null
}

const gravities: readonly NextStep[] = [
  'decide',
  'decide_once_funded',
  'give_back_and_review',
  'give_back_and_block_account',
  'give_back',
]

// Codes for an unstated reason. Another code beside them is the reason.
const unstated: ReadonlySet<string> = new Set(['MS02', 'MS03', 'NARR'])

/** 0 for the gravest. */
function gravityOf(code: string): number {
  const { next, isKnown } = reasonOf(code)
  return isKnown && !unstated.has(code) ? gravities.indexOf(next) : gravities.length
}

/**
 * Whether a payment was rejected for a reason about its payee, so that every copy of the payment is rejected. For any other reason, the
 * bank may reject a second copy and pay the first.
 */
export function isAboutPayee(given: GivenReasons): boolean {
  const code = gravestOf(given.reasonCodes)
  if (code === null || namesDuplicate(given)) return false
  return reasonOf(code).next === 'give_back_and_block_account' || othersAboutPayee.has(code)
}

const othersAboutPayee: ReadonlySet<string> = new Set([
  'AC06',
  'AG01',
  'AG11',
  'BE01',
  'CNOR',
  'MD07',
  'MS02',
  'RC04',
  'RR03',
])

/**
 * Whether an answer calls a payment or batch a duplicate. Some banks have no code for duplicates and say so in words, so all codes and
 * texts are searched. A word too many costs a decision; a missing word pays twice.
 */
export function namesDuplicate({ reasonCodes, reasonText }: GivenReasons): boolean {
  if (reasonCodes.some(code => reasonOf(code).next === 'decide')) return true
  const words = [...reasonCodes, reasonText ?? '']
    .join(' ')
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[_-]/g, ' ')
    .toLowerCase()
  return duplicateWords.some(pattern => pattern.test(words))
}

// docs/reference/bank-files.md has the same list. The text is in lower case, without accents.
const duplicateWords: readonly RegExp[] = [
  /\b(du0[1-5]|am05|dupl)\b/,
  // Duplicate, duplication, duplicado, duplicato, Duplikat, dublette, dubblett.
  /dupli[ck]a|dub+lett/,
  // Double, doublon; Doppeleinreichung, doppelt; dubbel; dobbelt; doble, doppio.
  /\b(doubl|doppel|doppi|dubbel|dobbelt|doble)/,
  /\b(not unique|nicht eindeutig|second copy|zweite einreichung|mehrfach|repeated|re ?submission|wiederhol)/,
  // "Reeds verwerkt", "ya fue procesado", "gia presentata", "juz przetworzony".
  /\b(reeds (aangeboden|bekend|ingediend|ontvangen|uitgevoerd|verwerkt)|gia (elabor|esegu|invi|present|ricev|trasmess)|ya (fue|ha sido|existe)|juz (otrzym|przetworz|przyj)|(id|file|message) exists)/,
  // "Message id already processed", "Datei wurde bereits am 12.03. eingereicht".
  /\b(already|previously|bereits|schon|deja)\b[^,;:!?]{0,40}?\b(accept|book|execut|exist|import|known|paid|present|process|receiv|sent|submit|us(ed|ing)|angenommen|ausgefuhrt|bekannt|eingegangen|eingereicht|empfangen|erhalten|gebucht|ubermittelt|verarbeitet|verwendet|vorhanden|execute|recu|traite)/,
]

/** What follows for the member once the money is given back; null if nothing does. */
export function restrictionOf(code: string | null): Restriction | null {
  return restrictions[reasonOf(code).next]
}

const restrictions: Record<NextStep, Restriction | null> = {
  give_back_and_block_account: 'account_refused',
  give_back_and_review: 'review',
  give_back: null,
  decide_once_funded: null,
  decide: null,
}

/**
 * A reason as partners and members read it: the code verbatim, and what it means if it is known. The bank's own words are
 * left out, since they may hold names.
 */
export function reasonInWords(code: string | null): string | null {
  if (code === null) return null
  const { isKnown, meaning } = reasonOf(code)
  return isKnown ? `${code} ${meaning}` : code
}

// docs/reference/bank-files.md and docs/reference/adyen.md have the same table.
const table: Record<NextStep, Record<string, string>> = {
  give_back_and_block_account: {
    AC01: 'The account number is wrong',
    AC03: 'The account number is missing or wrong',
    AC04: 'The account is closed',
    AC07: 'The account is closed',
    BE04: 'The address of the payee is missing or wrong',
    RC01: 'The bank code is wrong',
    // ARUCS, the returns of Bacs credits, has one character.
    '0': 'The account details are wrong',
    '3': 'The account was transferred to another bank',
    '5': 'There is no such account',
    B: 'The account is closed',
    // Adyen's reasons are words.
    counterpartyAccountClosed: 'The account is closed',
    counterpartyAccountNotFound: 'There is no such account',
    invalidAccount: 'The account is wrong',
    invalidToAccount: 'The account is wrong',
  },
  give_back_and_review: {
    AB05: 'Timed out at the bank of the payee',
    AB06: 'Timed out between the banks',
    AB09: 'An error at the bank of the payee',
    AC06: 'The account is blocked',
    AC13: 'The account of the payer is of the wrong kind',
    AG01: 'Payments to this account are not allowed',
    AG02: 'The kind of payment is not allowed',
    AG10: 'A bank is suspended from the scheme',
    AG11: 'The bank of the payee is suspended from the scheme',
    AM02: 'The amount is above the limit of the bank or scheme',
    AM09: 'The amount is not what was agreed',
    AM10: 'The sum of the file or batch is wrong',
    BE01: 'The name does not fit the account',
    BE05: 'The sender is not known to the bank',
    CNOR: 'The bank of the payee is not in the scheme',
    CURR: 'The currency is wrong',
    CUST: 'The payer asked for the money back',
    DT01: 'The date is wrong',
    ED05: 'The settlement failed',
    FF01: 'The file or payment is malformed',
    FOCR: 'Returned after a recall',
    MD07: 'The payee has died',
    MS02: 'The payee refused the payment; no reason was given',
    MS03: 'The bank gave no reason',
    NARR: 'The reason is in the text',
    NOAS: 'The payee did not answer a recall',
    RC04: 'The bank of the payee is not known',
    RR01: 'Regulation: the account of the payer is missing',
    RR02: 'Regulation: the name or address of the payer is missing',
    RR03: 'Regulation: the name or address of the payee is missing',
    RR04: 'Refused for regulatory reasons',
    TECH: 'A technical problem',
    TM01: 'The file came after the cut-off',
    '2': 'The payee has died',
    C: 'The payer asked for the money back',
    counterpartyAccountBlocked: 'The account is blocked',
    counterpartyAddressRequired: 'The bank asks for the address of the payee',
    declined: 'The bank declined the payment',
    fraud: 'The bank suspects fraud',
    refusedByCounterpartyBank: 'The bank of the payee refused the payment',
    refusedByCustomer: 'The payee refused the payment',
    routeNotFound: 'The bank of the payee cannot be reached',
    unableToRouteTransaction: 'The bank of the payee cannot be reached',
    unknown: 'The bank gave no reason',
  },
  give_back: {
    accountHierarchyNotActive: 'The paying account is not active',
    amountLimitExceeded: 'The amount is above a limit of the paying account',
    approvalExpired: 'The payment was not approved in time',
    balanceAccountTemporarilyBlockedByTransactionRule: 'A rule blocks the paying account',
    cancelled: 'The payment was cancelled',
    counterpartyBankTimedOut: 'The bank of the payee did not answer in time',
    counterpartyBankUnavailable: 'The bank of the payee is not available',
    declinedByTransactionRule: 'A rule of the paying account declined the payment',
    error: 'A technical problem',
    internalTimeout: 'Timed out at the bank',
    withdrawalAmountExceeded: 'A limit of the paying account is used up',
    withdrawalCountExceeded: 'A limit of the paying account is used up',
  },
  decide_once_funded: {
    AM04: 'Not enough money on the account',
    notEnoughBalance: 'Not enough money on the paying account',
  },
  decide: {
    AM05: 'A duplicate of another payment',
    DU01: 'The message id was used before',
    DU02: 'The id of the payment information was used before',
    DU03: 'The payment was sent before',
    DU04: 'The end-to-end id was used before',
    DU05: 'The instruction id was used before',
    DUPL: 'A duplicate of another payment',
    duplicateTransmissionDetected: 'A duplicate of another payment',
  },
}

const reasons: ReadonlyMap<string, { next: NextStep; meaning: string }> = new Map(
  Object.entries(table).flatMap(([next, codes]) =>
    Object.entries(codes).map(([code, meaning]) => [code, { next: next as NextStep, meaning }] as const),
  ),
)
