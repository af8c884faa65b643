import { Type } from 'typebox'
import { passwordLimits } from '../../users/passwords.ts'
import { roles } from '../../users/roles.ts'

export const strict = { additionalProperties: false }

/** The secret part of a one-time link. */
export const Token = Type.String({ minLength: 1, maxLength: 200 })
export const Email = Type.String({ pattern: '^[^\\s@\\x00-\\x1f\\x7f]+@[^\\s@\\x00-\\x1f\\x7f]+$', maxLength: 254 })
export const PersonName = Type.String({ pattern: '^(?=.*\\S)[^\\x00-\\x1f\\x7f]*$', maxLength: 200 })
/** Any password is taken where one is checked. */
export const Password = Type.String({ minLength: 1, maxLength: 4 * passwordLimits.lengthMax })
/** Of the authenticator app, or a recovery code. */
export const Code = Type.String({ minLength: 1, maxLength: 40 })

const Role = Type.Enum([...roles], { type: 'string' })
export const Roles = Type.Array(Role, { minItems: 1, maxItems: roles.length, uniqueItems: true })
