import { type Static, Type } from 'typebox'
import type { Page } from '../database/database.ts'

/** The page of a list: how many entries to skip and to return. The answer echoes both. */
export const pageQuery = {
  skip: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 1_000_000_000, default: 0, description: 'Number of entries to skip.' }),
  ),
  take: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000,
      default: 50,
      description: 'Maximum number of entries to return, 1 to 1,000.',
    }),
  ),
}

const PageQuery = Type.Object(pageQuery)

export function pageOf({ skip = 0, take = 50 }: Static<typeof PageQuery>): Page {
  return { skip, take }
}

/** The page fields in the answer of a list. */
export const pageFields = {
  skip: Type.Integer({ minimum: 0, description: 'Number of skipped entries.' }),
  take: Type.Integer({ minimum: 1, description: 'Maximum number of entries in this answer.' }),
}
export const totalField = { total: Type.Integer({ minimum: 0, description: 'Number of entries in the whole list.' }) }
