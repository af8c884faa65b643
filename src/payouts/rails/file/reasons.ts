/** What happens after a payment failed or came back, besides the money going back to the member. */
export type Consequence =
  /** The account is wrong: it is blocked until it is changed. */
  | 'block-account'
  /** A person has to look at the member before the next withdrawal. */
  | 'review-member'
  /** Our own account lacks the money: the operator tops it up and decides. */
  | 'float'
  /** The bank has the payment twice: never pay it again on our own. */
  | 'duplicate'

type Known = { meaning: string; consequence: Consequence }

// Source: ISO 20022 external code set of status and return reasons; Bacs, "ARUCS reason codes".
const known: ReadonlyMap<string, Known> = new Map(
  Object.entries({
    AC01: { meaning: 'The account number is wrong', consequence: 'block-account' },
    AC03: { meaning: 'The account number is wrong', consequence: 'block-account' },
    AC04: { meaning: 'The account is closed', consequence: 'block-account' },
    AC07: { meaning: 'The account is closed', consequence: 'block-account' },
    RC01: { meaning: 'The bank of the account is unknown', consequence: 'block-account' },
    BE04: { meaning: 'The account holder’s address is missing or wrong', consequence: 'block-account' },
    AC06: { meaning: 'The account is blocked', consequence: 'review-member' },
    AG01: { meaning: 'The account takes no such payments', consequence: 'review-member' },
    MD07: { meaning: 'The account holder has died', consequence: 'review-member' },
    MS02: { meaning: 'The account holder gave no reason', consequence: 'review-member' },
    MS03: { meaning: 'The bank gave no reason', consequence: 'review-member' },
    FOCR: { meaning: 'The payment was recalled', consequence: 'review-member' },
    AM04: { meaning: 'The paying account lacks the money', consequence: 'float' },
    AM05: { meaning: 'The bank takes the payment for a duplicate', consequence: 'duplicate' },
    DUPL: { meaning: 'The bank takes the payment for a duplicate', consequence: 'duplicate' },
    0: { meaning: 'The account details are wrong', consequence: 'block-account' },
    2: { meaning: 'The account holder has died', consequence: 'review-member' },
    3: { meaning: 'The account was transferred', consequence: 'block-account' },
    5: { meaning: 'There is no such account', consequence: 'block-account' },
    B: { meaning: 'The account is closed', consequence: 'block-account' },
    C: { meaning: 'The payment was recalled', consequence: 'review-member' },
  } satisfies Record<string, Known>),
)

/** What follows from a bank's reason code. An unknown code, or none, is for a person to look at. */
export function consequenceOf(code: string | null): Consequence {
  return known.get(code ?? '')?.consequence ?? 'review-member'
}

/**
 * A reason as partners and members read it: the code verbatim, and what it means.
 * @param text the bank's own words, for a code that is not known. They may hold names, so they are for operators only
 */
export function reasonInWords(code: string | null): string | null {
  if (code === null) return null
  const meaning = known.get(code)?.meaning
  return meaning === undefined ? code : `${code} ${meaning}`
}
