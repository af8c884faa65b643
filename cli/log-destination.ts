import { constants, fstatSync, openSync, writeSync } from 'node:fs'
import { isatty } from 'node:tty'

const limits = {
  // One write costs as much as formatting ten lines, so lines are written by the page.
  pageBytes: 4_096,
  // A few thousand lines: enough to ride out a reader that stalls briefly, small enough to hold in memory.
  pendingCharsMax: 1_048_576,
  // How long to wait at exit for a slow reader. A stalled one must not delay the exit further.
  exitMsMax: 500,
  exitPauseMs: 10,
}

// The pipe or socket is closed for good. Every other error may be temporary.
const closedCodes = ['EPIPE', 'ECONNRESET']

/**
 * Writes log lines to a file descriptor and drops them rather than block. While the disk is full or the reader is stalled,
 * dropped lines are counted; once there is room again, `lossLine` reports how many are missing.
 *
 * Pino's own destination retries a failed write forever, which blocks every request.
 */
export class LogDestination {
  private readonly fd: number
  private readonly format: (line: string) => string
  private readonly lossLine: (count: number) => string
  private readonly onReaderGone: () => void
  /** Lines not yet on a page. */
  private pending = ''
  private page: Page | undefined
  private lostCount = 0
  private isMidLine = false
  private isReaderGone = false

  /** @param format rewrites a line for output; both forms end with a line feed */
  constructor(
    fd: number,
    {
      format = line => line,
      lossLine,
      onReaderGone,
    }: { format?: (line: string) => string; lossLine: (count: number) => string; onReaderGone: () => void },
  ) {
    this.fd = nonBlocking(fd)
    this.format = format
    this.lossLine = lossLine
    this.onReaderGone = onReaderGone
  }

  write(line: string): void {
    if (this.isReaderGone) return
    if (this.pending.length + line.length > limits.pendingCharsMax) {
      this.lostCount++
      return
    }
    this.pending += this.format(line)
    if (this.pending.length >= limits.pageBytes) this.flush()
  }

  /** Writes as much as fits. Never throws, never blocks. */
  flush(): void {
    while (!this.isReaderGone) {
      const page = this.page ?? this.nextPage()
      if (page === undefined) return
      try {
        while (page.written < page.bytes.length) page.written += writeSync(this.fd, page.bytes, page.written)
        this.isMidLine = false
        this.page = undefined
      } catch (error) {
        const { code = '' } = error as NodeJS.ErrnoException
        // The pipe is full: the next flush writes the rest.
        this.page = page
        if (code === 'EAGAIN') return
        this.drop(page)
        if (closedCodes.includes(code)) {
          this.isReaderGone = true
          this.onReaderGone()
        }
        return
      }
    }
  }

  /** Waits briefly for a slow reader to take the last lines. */
  flushBeforeExit(): void {
    const deadline = performance.now() + limits.exitMsMax
    for (this.flush(); this.page !== undefined && performance.now() < deadline; this.flush()) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, limits.exitPauseMs)
    }
  }

  private nextPage(): Page | undefined {
    if (this.pending === '' && this.lostCount === 0) return undefined
    // After a line that a full disk cut short, start a new one.
    const head = (this.isMidLine ? '\n' : '') + (this.lostCount === 0 ? '' : this.format(this.lossLine(this.lostCount)))
    const page = {
      bytes: Buffer.from(head + this.pending),
      headBytes: Buffer.byteLength(head),
      lostCount: this.lostCount,
      written: 0,
    }
    this.pending = ''
    this.lostCount = 0
    return page
  }

  private drop({ bytes, headBytes, lostCount, written }: Page): void {
    this.lostCount += lineFeedsIn(bytes.subarray(Math.max(written, headBytes)))
    // The loss report was also dropped.
    if (written < headBytes) this.lostCount += lostCount
    if (written > 0) this.isMidLine = bytes[written - 1] !== lineFeed
    this.page = undefined
  }
}

/** `headBytes` is the length of the loss report at the start; `written` counts the bytes already out. */
type Page = { bytes: Buffer; headBytes: number; lostCount: number; written: number }

const lineFeed = 10

function lineFeedsIn(bytes: Buffer): number {
  let count = 0
  for (const byte of bytes) if (byte === lineFeed) count++
  return count
}

/** A full pipe, or a terminal paused with Ctrl-S, must return EAGAIN instead of blocking the process. */
function nonBlocking(fd: number): number {
  if (isatty(fd)) {
    try {
      // Reopened, because the shell shares the terminal and expects it to block.
      return openSync(`/dev/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
    } catch {
      return fd
    }
  }
  // Node makes a pipe or socket non-blocking when it creates the stream.
  if (fd === 2 && (fstatSync(fd).isFIFO() || fstatSync(fd).isSocket())) void process.stderr
  return fd
}
