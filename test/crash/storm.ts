import { watch } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Postgres } from '../servers/postgres.ts'
import type { Process, Role } from './program.ts'
import type { Random } from './random.ts'
import { until } from './until.ts'

export type Kills = Record<Role | 'PostgreSQL', number>

/** Time from readiness to the kill. A process does most of its work within its first second. */
const uptimeMs = { min: 50, max: 1_800 }
const downMsMax = 1_200
// A kill takes three seconds on two idle cores.
const msPerKillMax = 15_000

/**
 * Kills one victim after the other; the seed determines the order and the timing. Each victim restarts after a random
 * delay, so that several may be down at once.
 * @returns the number of kills by kind
 * @throws if a victim does not come back before its next kill, or the whole run takes too long
 */
export async function killRepeatedly(
  { ofProgram, ofPostgres }: { ofProgram: number; ofPostgres: number },
  { processes, postgres, random }: { processes: Process[]; postgres: Postgres | undefined; random: Random },
): Promise<Kills> {
  const kills: Kills = { API: 0, worker: 0, PostgreSQL: 0 }
  const victims = random.shuffled([
    ...Array.from({ length: ofProgram }, (_, index) => processes[index % processes.length]),
    ...Array.from({ length: ofPostgres }, () => postgres),
  ])
  const deadline = Date.now() + victims.length * msPerKillMax
  let recovering = Promise.resolve()
  for (const victim of victims) {
    const aliveMs = random.between(uptimeMs.min, uptimeMs.max)
    const downMs = random.between(0, downMsMax)
    // One in six is killed before it is ready, to interrupt startup and recovery as well.
    const isHasty = random.chance(1 / 6)
    if (Date.now() > deadline) throw new Error(`The run takes too long; kills so far: ${JSON.stringify(kills)}`)
    if (victim === undefined) continue
    if ('name' in victim) {
      await until(() => (isHasty ? victim.isAlive() : victim.isReady()), `${victim.name} is ready`)
      await sleep(aliveMs)
      await until(() => victim.isAlive(), `${victim.name} is alive`)
      victim.kill(downMs)
      kills[victim.role]++
    } else {
      if (!isHasty) await recovering
      await sleep(isHasty ? aliveMs / 10 : aliveMs)
      await victim.kill()
      kills.PostgreSQL++
      await recovering
      recovering = sleep(downMs).then(() => victim.start())
      // Awaited later; until then, this avoids an unhandled rejection.
      recovering.catch(() => undefined)
    }
  }
  await recovering
  return kills
}

/** The steps of a file: being written, recorded, released to the bank, delivered by the bank, moved away after reading. */
const steps = ['outbox/.', 'sent/', 'outbox/', 'inbox/', 'archive/', 'rejected/'] as const

/**
 * Kills all workers at the moment when a file in a folder appears or moves, that is between two steps of sending or reading
 * the file. The seed determines which moments.
 */
export function killAtFiles(
  folder: string,
  { processes, random, killsMax }: { processes: Process[]; random: Random; killsMax: number },
): { kills(): Record<string, number>; isDone(): boolean; stop(): void } {
  const kills = new Map<string, number>()
  const workers = processes.filter(({ role }) => role === 'worker')
  const watcher = watch(folder, { recursive: true }, (_event, name) => {
    const step = steps.find(each => name?.startsWith(each))
    const count = kills.get(step ?? '') ?? 0
    // Each step has a share of the kills, so that frequent steps do not use them up.
    if (step === undefined || count >= killsMax / steps.length || random.chance(1 / 2)) return
    const running = workers.filter(worker => worker.isReady() && worker.isAlive())
    if (running.length === 0) return
    kills.set(step, count + 1)
    for (const worker of running) worker.kill(random.between(0, downMsMax / 4))
  })
  const total = () => [...kills.values()].reduce((sum, count) => sum + count, 0)
  return {
    kills: () => Object.fromEntries([...kills].map(([step, count]) => [`at ${step}`, count])),
    isDone: () => total() >= killsMax,
    stop: () => watcher.close(),
  }
}
