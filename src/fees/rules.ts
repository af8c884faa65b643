type Coverage = { covered: bigint; due: { amount: bigint; received: bigint } | undefined }

/**
 * Returns how much can be collected of the fees that a settlement covers: all of them once all its money has arrived, and before
 * that at most the money that has arrived. A shortfall is taken from the advances first.
 * @param due undefined if no money was to arrive for the settlement; a negative amount was to be paid to the employer
 */
export function collectable({ covered, due }: Coverage): bigint {
  if (due === undefined || due.amount <= 0n || due.received === due.amount) return covered
  return due.received < covered ? due.received : covered
}
