/** Messages for a failed single sign-on, by the `fault` in the address that the server redirects to. */
export const signInFaults = new Map<string | undefined, string>([
  ['provider', 'Your organisation’s sign-in did not confirm who you are. Try again.'],
  ['no_account', 'There is no account for you here, or your e-mail address is not verified. Ask for an invitation.'],
  ['no_role', 'Your account has no role here. Ask an operator.'],
  ['last_operator', 'You are the last operator, and your groups no longer allow it. Make another person an operator.'],
  [
    'other_identity',
    'Your e-mail address is linked to another account of your organisation. An operator can unlink it.',
  ],
])
