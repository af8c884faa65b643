const works: (() => Promise<void> | void)[] = []
let ending: Promise<void> | undefined

/** Registers work for the end of the run, however it ends. The work registered last runs first. */
export function atEnd(work: () => Promise<void> | void): void {
  works.push(work)
}

/** Cleans up once: concurrent callers wait for the same cleanup. */
export function end(): Promise<void> {
  ending ??= undo()
  return ending
}

async function undo(): Promise<void> {
  for (let work = works.pop(); work !== undefined; work = works.pop()) {
    try {
      await work()
    } catch (error) {
      // The rest must be cleaned up all the same.
      console.error(`bench: could not clean up: ${error instanceof Error ? error.message : error}`)
    }
  }
}
