import { setTimeout as pause } from 'node:timers/promises'
import { Deadline } from '../kernel/deadline.ts'
import { scopesOf } from '../partners/clocks.ts'
import type { Scope, TaskName } from '../worker/task.ts'
import type { MoveContext } from './moves.ts'

const limits = {
  // Rows that a worker has locked are free after a moment.
  roundsMax: 20,
  roundMs: 100,
}

/**
 * Does the work of tasks for one partner now instead of waiting for the worker, until `isDone`. If that is not reached, for example because
 * the bank is silent, the worker continues.
 */
export async function runAtOnce(
  context: MoveContext,
  { partnerId, names, isDone }: { partnerId: string; names: readonly TaskName[]; isDone: () => Promise<boolean> },
): Promise<void> {
  // Not within the request's deadline: a call to a silent bank takes seconds.
  await Deadline.without(async () => {
    for (let round = 0; round < limits.roundsMax; round++) {
      if (round > 0) await pause(limits.roundMs)
      for (const name of names) await run(context, { partnerId, name })
      if (await isDone()) return
    }
  })
}

async function run(
  { db, log, now: realNow, tasks }: MoveContext,
  { partnerId, name }: { partnerId: string; name: TaskName },
): Promise<void> {
  const all = await scopesOf(db)
  const isOnly = ({ scope }: { scope: Scope }) =>
    typeof scope === 'object' && 'only' in scope && scope.only === partnerId
  const { scope, offsetMs } = all.find(isOnly) ?? { scope: all[0]?.scope ?? 'all', offsetMs: 0 }
  const now = () => new Date(realNow().getTime() + offsetMs)
  // The partners that share real time also share the feed of bank reports.
  const narrow: Scope = name === 'read-rail-reports' ? scope : { only: partnerId }
  try {
    await tasks[name]?.({ db, log, now, scope: narrow })
  } catch (error) {
    log.warn({ err: error, task: name, partnerId }, 'a task failed; the worker runs it again')
  }
}
