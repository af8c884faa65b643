import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { clean, wrapped } from './print.ts'
import { type Terminal, terminal } from './terminal.ts'

const defaultSize = { columns: 80, rows: 24 }

const escapes = {
  open: '\x1b[?1049h\x1b[?25l',
  close: '\x1b[?25h\x1b[?1049l',
  home: '\x1b[H',
  endOfLine: '\x1b[K',
  endOfScreen: '\x1b[J',
}

/** Whether the output is a terminal on which texts can replace each other. */
export function isScreen(): boolean {
  const { stdout, env } = terminal()
  return stdout.isTTY === true && env.TERM !== 'dumb'
}

/**
 * Shows a text again and again until Ctrl-C, or until the output's reader is gone.
 * @param read the next text; how long it takes comes on top of the pause
 * @param options.isInPlace whether a text replaces the last one, and follows the size of the window
 */
export async function watch(
  read: () => Promise<string>,
  { everyMs, isInPlace }: { everyMs: number; isInPlace: boolean },
): Promise<void> {
  const { stdout } = terminal()
  const ending = new AbortController()
  const end = () => ending.abort()
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, end)
  stdout.on('error', end).on('close', end)
  const screen = isInPlace ? new Screen() : undefined
  const aborted = once(ending.signal, 'abort').then(() => undefined)
  try {
    while (!ending.signal.aborted) {
      // A database that hangs must not delay the end.
      const text = await Promise.race([read(), aborted])
      if (text === undefined) break
      if (screen !== undefined) screen.show(text)
      else if (!stdout.write(`${text}\n`)) await Promise.race([once(stdout, 'drain'), aborted])
      await pause(everyMs, undefined, { signal: ending.signal }).catch(() => undefined)
    }
  } finally {
    screen?.end()
    stdout.off('error', end).off('close', end)
    for (const signal of signals) process.off(signal, end)
  }
}

class Screen {
  // Kept: a window is resized outside any command.
  readonly #stdout = terminal().stdout
  #text = ''
  readonly #draw = () => {
    const lines = fitted(this.#text, sizeOf(this.#stdout)).map(line => line + escapes.endOfLine)
    this.#stdout.write(escapes.home + lines.join('\r\n') + escapes.endOfScreen)
  }

  constructor() {
    this.#stdout.write(escapes.open)
    this.#stdout.on('resize', this.#draw)
  }

  show(text: string): void {
    this.#text = text
    this.#draw()
  }

  end(): void {
    this.#stdout.off('resize', this.#draw)
    if (this.#stdout.writable) this.#stdout.write(escapes.close)
  }
}

// A terminal that does not know its size reports 0.
function sizeOf({ columns, rows }: Terminal['stdout']) {
  return { columns: columns || defaultSize.columns, rows: rows || defaultSize.rows }
}

/** Wraps the lines of a text to the width of a screen, and says how many do not fit below. */
function fitted(text: string, { columns, rows }: { columns: number; rows: number }): string[] {
  const lines = text.split('\n').flatMap(line => wrapped(clean(line), columns))
  if (lines.length <= rows) return lines
  return [...lines.slice(0, rows - 1), `… ${lines.length - rows + 1} more lines`]
}
