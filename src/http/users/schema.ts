import { Type } from 'typebox'
import { wordOf } from '../../kernel/schemas.ts'
import { passwordLimits } from '../../users/passwords.ts'
import { roles } from '../../users/roles.ts'
import { emailLengthMax, emailPattern } from '../../users/users.ts'

/** The secret part of a one-time link. */
export const Token = Type.String({ minLength: 1, maxLength: 200 })
export const Email = Type.String({ pattern: emailPattern, minLength: 3, maxLength: emailLengthMax })
/** Has neither control characters nor characters that reverse the reading order. */
export const PersonName = Type.String({
  pattern: '^(?=.*\\S)[^\\p{Cc}\\u2028-\\u202e\\u2066-\\u2069]*$',
  maxLength: 200,
})
/** Where a password is checked, any text is accepted. */
export const Password = Type.String({ minLength: 1, maxLength: 4 * passwordLimits.lengthMax })
/** A code of the authenticator app, or a recovery code. */
export const Code = Type.String({ minLength: 1, maxLength: 40 })

const Role = wordOf(roles)
export const Roles = Type.Array(Role, { minItems: 1, maxItems: roles.length, uniqueItems: true })
