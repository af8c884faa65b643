import { Type } from 'typebox'

/** What payouts are recorded under; never reuse it for another bank. */
export const RailName = Type.String({ pattern: '^[a-z][a-z0-9-]{0,29}$' })
