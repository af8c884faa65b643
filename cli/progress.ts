const widthMax = 30

/** Tells on standard error how far something is: a bar that grows on a terminal, and else a line for every tenth. */
export class Progress {
  private readonly label: string
  private tenthsShown = -1
  private isShown = false

  constructor(label: string) {
    this.label = label
  }

  show({ done, total }: { done: number; total: number }): void {
    const share = total === 0 ? 1 : done / total
    if (process.stderr.isTTY) {
      const filled = Math.floor(share * widthMax)
      const bar = '█'.repeat(filled) + '░'.repeat(widthMax - filled)
      // Over the last one, and the rest of it wiped.
      process.stderr.write(`\r${this.label} ${bar} ${done} of ${total}\x1b[K`)
      this.isShown = true
    } else if (Math.floor(share * 10) > this.tenthsShown) {
      this.tenthsShown = Math.floor(share * 10)
      process.stderr.write(`${this.label}: ${done} of ${total}\n`)
    }
  }

  /** Leaves the bar behind, so that what follows begins a line. */
  end(): void {
    if (this.isShown) process.stderr.write('\n')
    this.isShown = false
  }
}
