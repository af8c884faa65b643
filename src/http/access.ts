import type { Scope } from '../partners/api-keys.ts'
import type { SessionScope } from '../partners/member-sessions.ts'
import type { PartnerAccess, Role } from '../users/roles.ts'

/** Who may call an operation. Exactly one of `scope`, `session`, `isForOperators`, `console` and `isPublic` is set. */
export type Access = {
  /** The scope that the API key must have. */
  scope?: Scope | 'any'
  /** The users of a partner who may call it from the console. */
  roles?: PartnerAccess
  /** The scope that the member session must have. */
  session?: SessionScope
  isForOperators?: true
  /**
   * The users of a partner who may call an operation for operators too, for their own partner only. A key does whatever its scopes
   * allow: one that a developer makes reads members, whom the developer does not see in the console. Those who run the partner’s
   * server hold its keys anyway, and each new key is in the audit log with its maker.
   */
  partnerRoles?: readonly Role[]
  /**
   * The operation is for pages of the console alone and in no document: for users by their session, for operators only, or for those
   * who sign in; `founder` is for what may lead to the first operator of an installation, and `visitor` for a page that another site leads to.
   * With `roles`, `user` admits the users who have one of them with the partner that the request names, and every operator.
   */
  console?: 'user' | 'operator' | 'stranger' | 'founder' | 'visitor'
  /** Needs no key, and is not idempotent by key. */
  isPublic?: true
}

export type Limits = {
  /** How long the body may take to arrive. Set where bodies are large. */
  arrivalMsMax?: number
  /** How long the response may take once the body has arrived. Set where it takes long. */
  answerMsMax?: number
  /** The call queues under overload instead of being refused: a probe must not report a busy process as broken. */
  isNeverShed?: true
  /** The size of a JSON body. Set where bodies are lists. */
  bodyBytesMax?: number
  /** The size of a file in the body. */
  fileBytesMax?: number
}

/** What else the server knows of an operation. */
export type Notes = {
  /** Days of the announcement and of the removal, and the path that replaces this one. */
  deprecated?: { since: string; sunset: string; successor: string }
  /** Users of the console see bank accounts unmasked: those of the response belong to no member. */
  showsAccounts?: true
}
