/**
 * What a random, large or crash test goes through: little in `npm test`, so that it takes a few minutes, and much in
 * `npm run test:long`, which .ci/run calls.
 */
export function extent<T>({ short, long }: { short: T; long: T }): T {
  return process.env.TEST_LONG === '1' ? long : short
}
