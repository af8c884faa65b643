import type { Db } from '../database/database.ts'
import { lockByName } from '../database/named-locks.ts'
import { createLink } from './links.ts'
import { createUser, findByEmail } from './users.ts'

const demoOperator = { email: 'operator@demo.example', name: 'Demo operator', isOperator: true }

// Long enough for a terminal that stays open overnight.
const linkLifeMs = 24 * 3_600_000

/**
 * Creates a one-time link that signs in as the demo operator of a sandbox, who has no password. It works on this machine only.
 * @returns the token for the fragment of `/console/sign-in`
 */
export async function createDemoLink(db: Db, now: Date): Promise<string> {
  return await db.transaction().execute(async tx => {
    // Two processes that start at once create one operator.
    await lockByName(tx, 'user', demoOperator.email)
    const { id: userId } =
      (await findByEmail(tx, demoOperator.email)) ?? (await createUser(tx, { ...demoOperator, now }))
    return await createLink(tx, { purpose: 'sign_in', userId, lifeMs: linkLifeMs, now })
  })
}
