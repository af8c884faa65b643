// Preloaded into a worker process to set its clock ahead, so that the test does not wait for hours. The product has no such
// switch.
const aheadMs = Number(process.env.CRASH_TEST_AHEAD_MS)
const RealDate = Date

class LaterDate extends RealDate {
  constructor(...given: unknown[]) {
    if (given.length === 0) super(RealDate.now() + aheadMs)
    else super(...(given as [number]))
  }
  static override now(): number {
    return RealDate.now() + aheadMs
  }
}

globalThis.Date = LaterDate as DateConstructor
