// Apart from the runner, which waits for the drills that import this.

/** Why a drill cannot run on this machine, which is not a failure. */
export class Skipped extends Error {}

export type Drill = {
  title: string
  /** @param say prints a line of the drill's report */
  run(say: (line: string) => void): Promise<void>
}
