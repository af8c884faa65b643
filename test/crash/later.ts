// Loaded into a worker before the program: its clock runs ahead, so that hours need not be waited for. The program itself
// knows nothing of it.
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
