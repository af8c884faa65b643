import { Type } from 'typebox'

export const Count = Type.Integer({ minimum: 0 })
export const TextOrNull = Type.Union([Type.String(), Type.Null()])
