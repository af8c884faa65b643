import { Type } from 'typebox'
import { Id } from '../../ids.ts'
import { Instant } from '../../time.ts'
import { roles } from '../../users/roles.ts'

const strict = { additionalProperties: false }

const Role = Type.Enum([...roles], { type: 'string' })

/** The secret part of a one-time link. */
export const Token = Type.String({ minLength: 1, maxLength: 200 })

export const SessionOfUser = Type.Object(
  {
    user: Type.Object({ id: Id('user'), name: Type.String(), email: Type.String(), hasTotp: Type.Boolean() }, strict),
    mode: Type.Enum(['sandbox', 'live'], { type: 'string' }),
    isOperator: Type.Boolean({ description: 'May do everything, for every partner.' }),
    partners: Type.Array(Type.Object({ id: Id('partner'), name: Type.String(), roles: Type.Array(Role) }, strict), {
      description: 'The partners of the user; of an operator, the newest 1,000.',
    }),
    idleExpiresAt: Instant,
    expiresAt: Instant,
  },
  { title: 'SessionOfUser', ...strict },
)
