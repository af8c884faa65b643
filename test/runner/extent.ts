/**
 * The size of a random, large or crash test: small in `npm test` and `npm run test:e2e`, so that they take a few minutes, and
 * large in `npm run test:long` and in .ci/run (`TEST_LONG=1`).
 */
export function extent<T>({ short, long }: { short: T; long: T }): T {
  return process.env.TEST_LONG === '1' ? long : short
}
