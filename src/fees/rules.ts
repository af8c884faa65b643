/**
 * What can be collected of the fees that a settlement covers. Once all its money has arrived, it is all of them; before, as much as
 * has arrived: what is still missing is taken from the advances first.
 * @param due of a settlement whose money was to arrive; a negative amount was to be paid to the employer
 */
export function collectable({
  covered,
  due,
}: {
  covered: bigint
  due: { amount: bigint; received: bigint } | undefined
}): bigint {
  if (due === undefined || due.amount <= 0n || due.received === due.amount) return covered
  return due.received < covered ? due.received : covered
}
