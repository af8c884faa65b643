import type { Operation } from '../operation.ts'
import { named } from '../operation.ts'
import { accountOperations } from './account-operations.ts'
import { getAuthors } from './author-operations.ts'
import { invitationOperations } from './invitation-operations.ts'
import { logoOperations } from './logo-operations.ts'
import { oidcOperations } from './oidc-operations.ts'
import type { SignInContext } from './operation-context.ts'
import { sessionOperations } from './session-operations.ts'
import { userManagementOperations } from './user-operations.ts'

/**
 * Signing in to the console, and managing users. These operations are not part of the partner API and not in its OpenAPI document:
 * they are for a browser, whose cookie identifies the user.
 */
export const userOperations: readonly Operation<SignInContext>[] = [
  ...sessionOperations,
  ...accountOperations,
  ...userManagementOperations,
  ...invitationOperations,
  ...oidcOperations,
  ...named({ getAuthors }),
  ...logoOperations,
]
