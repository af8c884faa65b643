import { terminal } from './terminal.ts'

const widthMax = 30

/** Shows progress on standard error: a bar on a terminal, otherwise a line for every 10 %. */
export class Progress {
  private readonly label: string
  private tenthsShown = -1
  private isShown = false

  constructor(label: string) {
    this.label = label
  }

  show({ done, total }: { done: number; total: number }): void {
    const share = total === 0 ? 1 : done / total
    if (terminal().stderr.isTTY) {
      const filled = Math.floor(share * widthMax)
      const bar = '█'.repeat(filled) + '░'.repeat(widthMax - filled)
      // Overwrites the previous bar and clears the rest of the line.
      terminal().stderr.write(`\r${this.label} ${bar} ${done} of ${total}\x1b[K`)
      this.isShown = true
    } else if (Math.floor(share * 10) > this.tenthsShown) {
      this.tenthsShown = Math.floor(share * 10)
      terminal().stderr.write(`${this.label}: ${done} of ${total}\n`)
    }
  }

  /** Moves past the bar, so that later output starts on a new line. */
  end(): void {
    if (this.isShown) terminal().stderr.write('\n')
    this.isShown = false
  }
}
