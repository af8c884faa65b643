import { type Static, Type } from 'typebox'
import type { Cursor } from '../database/cursor.ts'
import type { Page } from '../database/database.ts'
import { problem } from '../kernel/errors.ts'
import { Id, type IdKind } from '../kernel/ids.ts'

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

/** Pages by cursor. Unlike pages by `skip`, they do not shift while entries are added. For lists that are newest first. */
export function cursorQuery(kind: IdKind) {
  return {
    after: Type.Optional(
      Id(
        kind,
        'The id of the last entry of this page, to get the next page, of older entries. Not together with `skip` or `before`.',
      ),
    ),
    before: Type.Optional(
      Id(
        kind,
        'The id of the first entry of this page, to get the previous page, of newer entries. Not together with `skip` or `after`.',
      ),
    ),
  }
}

/** Of a list that has a member's entries together. */
export const lastMember = 'The `memberId` of the last entry of this page'

/** The next page of a list whose entries have this kind of id, or belong to a resource with it. */
export function afterQuery(kind: IdKind, of = 'The id of the last entry of this page') {
  return { after: Type.Optional(Id(kind, `${of}, to get the next page. Not together with \`skip\`.`)) }
}

/** The pages of a list without a total, which is only read forwards. @param of the entries */
export function nextQuery(kind: IdKind, of: string) {
  const description = `The id of the last ${of} of this page, to get the next page.`
  return { after: Type.Optional(Id(kind, description)), take: pageQuery.take }
}

type PageAsked = { skip?: number; after?: string; before?: string }

/** @throws Problem `QueryValidation` if the query asks for two pages */
export function cursorOf({ skip, after, before }: PageAsked): Cursor | undefined {
  if (after !== undefined && before !== undefined) {
    throw problem('QueryValidation', 'before cannot be combined with after; send one of them', { path: 'before' })
  }
  refuseSkipWith({ skip, after, before })
  if (after === undefined && before === undefined) return undefined
  return after === undefined ? { side: 'before', id: before ?? '' } : { side: 'after', id: after }
}

/** @throws Problem `QueryValidation` if the query has both a cursor and `skip` */
export function refuseSkipWith(query: { skip?: number | undefined; after?: unknown; before?: unknown }): void {
  const hasCursor = query.after !== undefined || query.before !== undefined
  if (query.skip === undefined || !hasCursor) return
  throw problem('QueryValidation', 'skip cannot be combined with after or before; leave it out', { path: 'skip' })
}

/**
 * Cuts the rows of a page, of which one more than asked for was read, to tell whether there is more.
 * @param options.cursor the surplus row is the one farthest from it; without one, the last
 */
export function cutPage<Row>(
  rows: Row[],
  { take, cursor }: { take: number; cursor?: Cursor | undefined },
): { rows: Row[]; hasMore: boolean } {
  return { rows: cursor?.side === 'before' ? rows.slice(-take) : rows.slice(0, take), hasMore: rows.length > take }
}

/** Reads one row more than a page has, to tell whether there is more. */
export async function readPage<Row>(
  query: Static<typeof PageQuery>,
  read: (take: number) => Promise<Row[]>,
): Promise<{ rows: Row[]; hasMore: boolean }> {
  const { take } = pageOf(query)
  return cutPage(await read(take + 1), { take })
}

/** The page fields in the answer of a list. */
export const pageFields = {
  skip: Type.Integer({ title: 'PageSkip', minimum: 0, description: 'Number of skipped entries.' }),
  take: Type.Integer({ title: 'PageTake', minimum: 1, description: 'Maximum number of entries in this answer.' }),
}
export const totalField = {
  total: Type.Integer({ title: 'ListTotal', minimum: 0, description: 'Number of entries in the whole list.' }),
}
export const hasMoreField = {
  hasMore: Type.Boolean({ description: 'Whether there are more after the last of these.' }),
}
