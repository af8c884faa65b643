import pg from 'pg'
import { expect, test, vi } from 'vitest'
import { outageOutcome, type Unavailable } from '../database/errors.ts'
import { Deadline } from '../kernel/deadline.ts'
import { Problem, problem } from '../kernel/errors.ts'
import type { Lanes } from '../kernel/lanes.ts'
import { Batches, busy, type CommandOutcome } from './batch.ts'

// Each test runs batches with its own function, without a database.

/** Runs batches until the test ends them. */
function stepwise<Result>(decide: (command: string) => CommandOutcome<Result>, options: { lanes?: Lanes } = {}) {
  const started: string[][] = []
  const gates: (() => void)[] = []
  const batches = new Batches<string, Result>(async commands => {
    started.push(commands)
    await new Promise<void>(resolve => gates.push(resolve))
    return commands.map(decide)
  }, options)
  const turn = () => new Promise(resolve => setImmediate(resolve))
  return { batches, started, turn, letGo: () => gates.splice(0).map(open => open()) }
}

const failing = (code: string) => Object.assign(new pg.DatabaseError('made up', 0, 'error'), { code })

test('a single command is a batch of one', async () => {
  const batches = new Batches<string, object>(async commands => commands.map(name => ({ name })))
  expect(await batches.submit('a', 'one')).toEqual({ name: 'one' })
})

test('commands of one event-loop turn are one batch; commands submitted while batches are in flight are the next one, in order', async () => {
  const { batches, started, turn, letGo } = stepwise(name => ({ name }))
  const first = ['1', '2'].map(name => batches.submit('a', name))
  await turn()
  const second = ['3'].map(name => batches.submit('a', name))
  await turn()
  const third = ['4', '5', '6'].map(name => batches.submit('b', name))
  await turn()
  expect(started).toEqual([['1', '2'], ['3']])
  letGo()
  await Promise.all([...first, ...second])
  await turn()
  expect(started).toEqual([['1', '2'], ['3'], ['4', '5', '6']])
  letGo()
  expect(await Promise.all(third)).toEqual([{ name: '4' }, { name: '5' }, { name: '6' }])
})

test('with a lane per partner a batch never mixes partners, and each partner has two batches in flight', async () => {
  const { batches, started, turn, letGo } = stepwise(name => ({ name }), { lanes: 'partner' })
  const submit = (names: string[]) => names.map(name => batches.submit(name.charAt(0), name))
  const first = submit(['a1', 'b1', 'a2', 'b2'])
  await turn()
  const second = submit(['a3', 'b3'])
  await turn()
  const third = submit(['a4', 'b4', 'a5', 'b5'])
  await turn()
  expect(started.splice(0)).toEqual([['a1', 'a2'], ['b1', 'b2'], ['a3'], ['b3']])
  letGo()
  await Promise.all([...first, ...second])
  await turn()
  expect(started).toEqual([
    ['a4', 'a5'],
    ['b4', 'b5'],
  ])
  letGo()
  expect(await Promise.all(third)).toEqual(['a4', 'b4', 'a5', 'b5'].map(name => ({ name })))
})

test('lanes take turns: with many partners at most eight batches are in flight, and a busy partner delays no other', async () => {
  const { batches, started, turn, letGo } = stepwise(name => ({ name }), { lanes: 'partner' })
  const busiest = Array.from({ length: 400 }, (_, index) => batches.submit('a', `a${index}`))
  const others = Array.from({ length: 20 }, (_, index) => batches.submit(`partner ${index}`, `other ${index}`))
  await turn()
  expect(started).toHaveLength(8)
  for (let round = 0; round < 2; round++) {
    letGo()
    await turn()
  }
  // Three rounds of eight batches: one for each of the twenty others, and the rest for the busy partner.
  expect(started).toHaveLength(24)
  expect(started.filter(([name]) => name?.startsWith('other'))).toHaveLength(20)
  for (let round = 0; round < 2; round++) {
    letGo()
    await turn()
  }
  await Promise.all([...busiest, ...others])
})

test('a batch has at most 128 commands', async () => {
  const { batches, started, turn, letGo } = stepwise(name => ({ name }))
  const all = Array.from({ length: 300 }, (_, index) => batches.submit('a', String(index)))
  await turn()
  for (let round = 0; round < 3; round++) {
    letGo()
    await turn()
  }
  await Promise.all(all)
  expect(started.map(commands => commands.length)).toEqual([128, 128, 44])
})

test('a refusal affects only its command', async () => {
  const batches = new Batches<string, object>(async commands =>
    commands.map(name => (name === 'bad' ? problem('Conflict', 'No') : { name })),
  )
  const [good, bad] = await Promise.allSettled([batches.submit('a', 'good'), batches.submit('a', 'bad')])
  expect(good).toEqual({ status: 'fulfilled', value: { name: 'good' } })
  expect(bad).toMatchObject({ status: 'rejected', reason: { name: 'Conflict' } })
})

test('a command that makes its batch fail fails alone, and every neighbour is executed once', async () => {
  const done: string[] = []
  const batches = new Batches<string, object>(async commands => {
    if (commands.includes('40')) throw new Error('Found 40')
    done.push(...commands)
    return commands.map(name => ({ name }))
  })
  const names = Array.from({ length: 100 }, (_, index) => String(index))
  const settled = await Promise.allSettled(names.map(name => batches.submit('a', name)))
  expect(settled.flatMap(({ status }, index) => (status === 'rejected' ? [index] : []))).toEqual([40])
  expect(settled[40]).toMatchObject({ reason: { message: 'Found 40' } })
  expect(done.toSorted()).toEqual(names.filter(name => name !== '40').toSorted())
})

test('a command whose row another process wrote first is retried once', async () => {
  let attempts = 0
  const violating = (times: number) => {
    attempts = 0
    return new Batches<string, object>(async commands => {
      attempts += 1
      if (attempts <= times) throw failing('23505')
      return commands.map(name => ({ name }))
    })
  }
  expect(await violating(1).submit('a', 'late')).toEqual({ name: 'late' })
  await expect(violating(2).submit('a', 'late')).rejects.toMatchObject({ code: '23505' })
  expect(attempts).toBe(2)
})

test('while the database is unreachable, all commands fail immediately and none is retried', async () => {
  let attempts = 0
  const batches = new Batches<string, object>(async () => {
    attempts += 1
    throw new Error('Connection terminated unexpectedly')
  })
  const settled = await Promise.allSettled(['1', '2', '3'].map(name => batches.submit('a', name)))
  expect(settled.every(({ status }) => status === 'rejected')).toBe(true)
  expect(attempts).toBe(1)
})

test('a command waits for a lock in its partner’s lane, without delaying the others', async () => {
  const free = Promise.withResolvers<void>()
  let isFree = false
  const waited: string[][] = []
  const batches = new Batches<string, object>(async (commands, { waits }) => {
    if (waits) {
      waited.push(commands)
      await free.promise
    }
    return commands.map(name => (name.startsWith('held') && !isFree && !waits ? busy : { name }))
  })
  const held = ['held 1', 'held 2', 'held 3'].map(name => batches.submit('a', name))
  expect(await batches.submit('b', 'free 1')).toEqual({ name: 'free 1' })
  expect(await batches.submit('a', 'free 2')).toEqual({ name: 'free 2' })
  isFree = true
  free.resolve()
  expect(await Promise.all(held)).toEqual([{ name: 'held 1' }, { name: 'held 2' }, { name: 'held 3' }])
  // Only the oldest command waited. The locks of the others had been released by then.
  expect(waited).toEqual([['held 1']])
})

test('a lock timeout fails only its command; its neighbours in the lane are executed', async () => {
  const batches = new Batches<string, object>(async (commands, { waits }) => {
    if (waits) throw failing('55P03')
    return commands.map(name => (name === 'held' || started++ < 1 ? busy : { name }))
  })
  let started = 0
  const [held, neighbour] = await Promise.allSettled([batches.submit('a', 'held'), batches.submit('a', 'neighbour')])
  expect(held).toMatchObject({ status: 'rejected', reason: { code: '55P03' } })
  expect(neighbour).toEqual({ status: 'fulfilled', value: { name: 'neighbour' } })
})

test('one partner’s waiting commands do not fill the shared queue', async () => {
  const never = new Promise<never>(() => undefined)
  const batches = new Batches<string, object>(async (commands, { waits }) => {
    if (waits) return await never
    return commands.map(name => (name === 'held' ? busy : { name }))
  })
  const held = Array.from({ length: 1_000 }, () => batches.submit('a', 'held').catch((error: unknown) => error))
  const refused = await Promise.race(held)
  expect(refused).toMatchObject({ name: 'ServiceUnavailable' })
  for (let index = 0; index < 500; index++) {
    expect(await batches.submit('b', 'free')).toEqual({ name: 'free' })
  }
})

test('a command that times out on a lock is retried on its own in its partner’s lane', async () => {
  const waited: string[][] = []
  const batches = new Batches<string, object>(async (commands, { waits }) => {
    if (waits) waited.push(commands)
    else if (commands.includes('a2')) throw failing('55P03')
    return commands.map(name => ({ name }))
  })
  await Promise.all([batches.submit('a', 'a1'), batches.submit('a', 'a2'), batches.submit('b', 'b1')])
  expect(waited).toEqual([['a2']])
})

test('when too many commands wait, the next one is refused immediately, and accepted again when they are done', async () => {
  const { batches, turn, letGo } = stepwise(name => ({ name }))
  const all = Array.from({ length: 1_024 }, (_, index) => batches.submit('a', String(index)))
  const tooMany = await batches.submit('a', 'one more').catch((error: unknown) => error)
  expect(tooMany).toBeInstanceOf(Problem)
  expect(tooMany).toMatchObject({ name: 'ServiceUnavailable', headers: { 'retry-after': '1' } })
  for (let round = 0; round < 8; round++) {
    await turn()
    letGo()
  }
  await Promise.all(all)
  const later = batches.submit('a', 'later')
  await turn()
  letGo()
  expect(await later).toEqual({ name: 'later' })
})

test('commands of a hanging batch get a response by their deadline, and commands queued behind the batch never run', async () => {
  vi.useFakeTimers()
  try {
    const started: string[][] = []
    const deadlines: (Deadline | undefined)[] = []
    const hanging = Promise.withResolvers<never>()
    const batches = new Batches<string, object>(async commands => {
      started.push(commands)
      deadlines.push(Deadline.current)
      return await hanging.promise
    })
    const submit = (name: string) =>
      new Deadline({ ms: 5_000 }).run(() =>
        batches.submit('a', name).catch((error: Unavailable) => [name, outageOutcome(error)]),
      )
    const answers = [submit('1')]
    await vi.advanceTimersByTimeAsync(1)
    answers.push(submit('2'))
    await vi.advanceTimersByTimeAsync(1)
    answers.push(submit('3'))
    // The batch has its own deadline for the database.
    expect(deadlines.map(each => Math.round((each?.leftMs ?? 0) / 1_000))).toEqual([4, 4])
    await vi.advanceTimersByTimeAsync(5_000)
    expect(await Promise.all(answers)).toEqual([
      ['1', 'unknown'],
      ['2', 'unknown'],
      ['3', 'nothing-done'],
    ])
    hanging.reject(new Error('Connection terminated'))
    await vi.advanceTimersByTimeAsync(1)
    expect(started).toEqual([['1'], ['2']])
  } finally {
    vi.useRealTimers()
  }
})
