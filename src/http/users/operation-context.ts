import { hasOperator } from '../../users/accounts.ts'
import { OidcProvider } from '../../users/oidc.ts'
import type { ApiContext } from '../server/server.ts'

/** What the sign-in page runs on. */
export type SignInContext = ApiContext & {
  /** The OpenID provider; undefined if users sign in with passwords only. */
  oidc: OidcProvider | undefined
  /** Whether the console has had its first operator. */
  isClaimed: () => Promise<boolean>
}

export function signInContext({ db, mode, console: settings }: ApiContext): Pick<SignInContext, 'oidc' | 'isClaimed'> {
  // A claimed live installation stays claimed: its last operator cannot be disabled.
  let isClaimed = mode === 'sandbox'
  return {
    oidc: settings?.oidc == null ? undefined : new OidcProvider(settings.oidc),
    isClaimed: async () => {
      isClaimed ||= await hasOperator(db)
      return isClaimed
    },
  }
}
