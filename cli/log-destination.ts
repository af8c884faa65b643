import { constants, fstatSync, openSync, writeSync } from 'node:fs'
import { isatty } from 'node:tty'

const limits = {
  // A page: a write costs as much as ten lines of text, and one request is one line.
  pageBytes: 4_096,
  // Some thousand lines: enough for a reader that stalls for a moment, small enough to forget about.
  pendingCharsMax: 1_048_576,
  // For a slow reader to take the last lines; a stalled one must not hold up the end of the process.
  exitMsMax: 500,
  exitPauseMs: 10,
}

// The reader has gone for good: a closed pipe, or a closed socket. Every other error may pass.
const goneCodes = ['EPIPE', 'ECONNRESET']

/**
 * Writes log lines to a file descriptor, and loses them rather than wait. While the disk is full or the reader has stalled,
 * lines are counted, and when there is room again, `lossLine` says how many are missing.
 *
 * Pino's own destination retries a failed write for ever, which stops every request with it.
 */
export class LogDestination {
  private readonly fd: number
  private readonly format: (line: string) => string
  private readonly lossLine: (count: number) => string
  private readonly onReaderGone: () => void
  /** Lines that no page holds yet. */
  private pending = ''
  private page: Page | undefined
  private lostCount = 0
  private isMidLine = false
  private isReaderGone = false

  /** @param format what is written of a line; both end with a line feed */
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

  /** Writes as much as can be written at once. Never throws and never waits. */
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
        // No room in the pipe: the rest goes with the next flush.
        this.page = page
        if (code === 'EAGAIN') return
        this.drop(page)
        if (goneCodes.includes(code)) {
          this.isReaderGone = true
          this.onReaderGone()
        }
        return
      }
    }
  }

  /** Gives a slow reader a moment to take the last lines. */
  flushBeforeExit(): void {
    const deadline = performance.now() + limits.exitMsMax
    for (this.flush(); this.page !== undefined && performance.now() < deadline; this.flush()) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, limits.exitPauseMs)
    }
  }

  private nextPage(): Page | undefined {
    if (this.pending === '' && this.lostCount === 0) return undefined
    // A line that was cut off by a full disk must not swallow the one after it.
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
    // The report was lost as well.
    if (written < headBytes) this.lostCount += lostCount
    if (written > 0) this.isMidLine = bytes[written - 1] !== lineFeed
    this.page = undefined
  }
}

/** `head` reports what was lost before; `written` counts the bytes that have gone. */
type Page = { bytes: Buffer; headBytes: number; lostCount: number; written: number }

const lineFeed = 10

function lineFeedsIn(bytes: Buffer): number {
  let count = 0
  for (const byte of bytes) if (byte === lineFeed) count++
  return count
}

/** A full pipe, or a terminal that was halted with Ctrl-S, must answer EAGAIN instead of blocking the process. */
function nonBlocking(fd: number): number {
  if (isatty(fd)) {
    try {
      // Opened anew, because the terminal is shared with the shell, which expects it to block.
      return openSync(`/dev/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
    } catch {
      return fd
    }
  }
  // Node switches a pipe or a socket when it makes the stream.
  if (fd === 2 && (fstatSync(fd).isFIFO() || fstatSync(fd).isSocket())) void process.stderr
  return fd
}
