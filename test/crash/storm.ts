import { setTimeout as sleep } from 'node:timers/promises'
import type { Postgres } from './postgres.ts'
import type { Process, Role } from './program.ts'
import type { Random } from './random.ts'
import { until } from './until.ts'

export type Kills = Record<Role | 'PostgreSQL', number>

/** Between a victim's being ready and its end; most of a process's work is done within a second of it. */
const livesMs = { min: 50, max: 1_800 }
const downMsMax = 1_200
// A kill takes three seconds on two idle cores.
const msPerKillMax = 15_000

/**
 * Kills one after the other, in an order and after times that the seed gives. Whoever is killed comes back after a short
 * time of its own, so that several may be down at once.
 * @returns what was killed how often
 * @throws when a victim does not come back, or all of it takes too long
 */
export async function rage(
  { ofProgram, ofPostgres }: { ofProgram: number; ofPostgres: number },
  { processes, postgres, random }: { processes: Process[]; postgres: Postgres; random: Random },
): Promise<Kills> {
  const kills: Kills = { API: 0, worker: 0, PostgreSQL: 0 }
  const victims = random.shuffled([
    ...Array.from({ length: ofProgram }, (_, index) => processes[index % processes.length]),
    ...Array.from({ length: ofPostgres }, () => postgres),
  ])
  const deadline = Date.now() + victims.length * msPerKillMax
  let recovering = Promise.resolve()
  for (const victim of victims) {
    const aliveMs = random.between(livesMs.min, livesMs.max)
    const downMs = random.between(0, downMsMax)
    // One in six does not even get ready: starting and recovering must be cut off, too.
    const isHasty = random.chance(1 / 6)
    if (Date.now() > deadline) throw new Error(`The storm takes too long: ${JSON.stringify(kills)} so far`)
    if (victim === undefined) continue
    if ('name' in victim) {
      await until(() => (isHasty ? victim.isAlive() : victim.isReady()), `${victim.name} is ready`)
      await sleep(aliveMs)
      await until(() => victim.isAlive(), `${victim.name} is there to be killed`)
      victim.kill(downMs)
      kills[victim.role]++
    } else {
      if (!isHasty) await recovering
      await sleep(isHasty ? aliveMs / 10 : aliveMs)
      await victim.kill()
      kills.PostgreSQL++
      await recovering
      recovering = sleep(downMs).then(() => victim.start())
      // Whoever waits for it hears of a failure; until then nobody does.
      recovering.catch(() => undefined)
    }
  }
  await recovering
  await until(() => processes.every(process => process.isReady()), 'everything is running again')
  return kills
}
