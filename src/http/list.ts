import { type Static, Type } from 'typebox'
import type { Page } from '../database/database.ts'

/** The page of a list: how many entries to pass over, and how many to give. Both are echoed in the answer. */
export const pageQuery = {
  skip: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 1_000_000_000, default: 0, description: 'Entries to pass over.' }),
  ),
  take: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1_000, default: 50, description: 'Entries to give, 1 to 1,000.' }),
  ),
}

const PageQuery = Type.Object(pageQuery)

export function pageOf({ skip = 0, take = 50 }: Static<typeof PageQuery>): Page {
  return { skip, take }
}

/** What a list's answer says about its page. */
export const pageFields = {
  skip: Type.Integer({ minimum: 0, description: 'Entries passed over.' }),
  take: Type.Integer({ minimum: 1, description: 'Largest number of entries in this answer.' }),
}
export const totalField = { total: Type.Integer({ minimum: 0, description: 'Entries in the whole list.' }) }
