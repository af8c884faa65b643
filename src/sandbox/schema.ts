import { type Static, Type } from 'typebox'
import { GivenDuration, GivenInstant, Instant } from '../time.ts'
import { dueKinds, nextKinds } from './due.ts'

const strict = { additionalProperties: false }

/** Exactly one of the three. */
export const ClockMove = Type.Object(
  {
    to: Type.Optional(GivenInstant),
    by: Type.Optional(GivenDuration),
    next: Type.Optional(
      Type.Enum([...nextKinds], { type: 'string', description: 'Moves the clock to when this falls due next.' }),
    ),
  },
  { ...strict, minProperties: 1, maxProperties: 1, examples: [{ by: 'P3D' }, { next: 'cycle_close' }] },
)
export type ClockMove = Static<typeof ClockMove>

const Ran = Type.Object(
  {
    due: Type.Enum(Object.keys(dueKinds) as (keyof typeof dueKinds)[], {
      type: 'string',
      description: 'What fell due.',
    }),
    from: Instant,
    to: Instant,
    count: Type.Integer({ minimum: 1 }),
  },
  { title: 'SandboxWork', ...strict },
)

export const SandboxClock = Type.Object(
  {
    now: Instant,
    aheadSeconds: Type.Integer({ minimum: 0, description: 'How far the clock is ahead of real time.' }),
    status: Type.Enum(['Still', 'Moving'], { type: 'string' }),
    lastMove: Type.Union([
      Type.Null(),
      Type.Object(
        {
          from: Instant,
          to: Instant,
          ran: Type.Array(Ran, {
            description:
              'The work that fell due on the way and was done, in order. Work of one kind in a row is one entry with the first and the last time; at most 1,000 entries.',
          }),
        },
        { title: 'SandboxClockMove', ...strict },
      ),
    ]),
  },
  { title: 'SandboxClock', ...strict },
)
