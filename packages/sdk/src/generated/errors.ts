// Generated from openapi-representation.json by `npm run generate`. Do not edit.

import { ApiError, type ErrorResponse } from '../errors.ts'
import type { AmountAboveUpperLimitIssue, AmountBelowLowerLimitIssue, BadRequestIssue, BankAccountInvalidIssue, BodyValidationIssue, ConflictIssue, FileContentIssue, ForbiddenIssue, HeaderValidationIssue, InternalServerErrorIssue, InvalidAddMemberPayloadIssue, InvalidRemoveMemberPayloadIssue, InvalidUpdateMemberPayloadIssue, MemberAlreadyInvitedIssue, MemberInsufficientFundsIssue, MemberNotEligibleIssue, MemberNotFoundIssue, NotFoundIssue, PathValidationIssue, QueryValidationIssue, RateLimitExceededIssue, UnprocessableEntityIssue } from './schemas.ts'

export class AmountAboveUpperLimitError extends ApiError<AmountAboveUpperLimitIssue> { declare readonly code: 'AmountAboveUpperLimit' }
export class AmountBelowLowerLimitError extends ApiError<AmountBelowLowerLimitIssue> { declare readonly code: 'AmountBelowLowerLimit' }
export class BadRequestError extends ApiError<BadRequestIssue> { declare readonly code: 'BadRequest' }
export class BankAccountInvalidError extends ApiError<BankAccountInvalidIssue> { declare readonly code: 'BankAccountInvalid' }
export class BodyValidationError extends ApiError<BodyValidationIssue> { declare readonly code: 'BodyValidation' }
export class ConflictError extends ApiError<ConflictIssue> { declare readonly code: 'Conflict' }
export class FileContentError extends ApiError<FileContentIssue> { declare readonly code: 'FileContent' }
export class ForbiddenError extends ApiError<ForbiddenIssue> { declare readonly code: 'Forbidden' }
export class HeaderValidationError extends ApiError<HeaderValidationIssue> { declare readonly code: 'HeaderValidation' }
export class InternalServerError extends ApiError<InternalServerErrorIssue> { declare readonly code: 'InternalServerError' }
export class InvalidAddMemberPayloadError extends ApiError<InvalidAddMemberPayloadIssue> { declare readonly code: 'InvalidAddMemberPayload' }
export class InvalidRemoveMemberPayloadError extends ApiError<InvalidRemoveMemberPayloadIssue> { declare readonly code: 'InvalidRemoveMemberPayload' }
export class InvalidUpdateMemberPayloadError extends ApiError<InvalidUpdateMemberPayloadIssue> { declare readonly code: 'InvalidUpdateMemberPayload' }
export class MemberAlreadyInvitedError extends ApiError<MemberAlreadyInvitedIssue> { declare readonly code: 'MemberAlreadyInvited' }
export class MemberInsufficientFundsError extends ApiError<MemberInsufficientFundsIssue> { declare readonly code: 'MemberInsufficientFunds' }
export class MemberNotEligibleError extends ApiError<MemberNotEligibleIssue> { declare readonly code: 'MemberNotEligible' }
export class MemberNotFoundError extends ApiError<MemberNotFoundIssue> { declare readonly code: 'MemberNotFound' }
export class NotFoundError extends ApiError<NotFoundIssue> { declare readonly code: 'NotFound' }
export class PathValidationError extends ApiError<PathValidationIssue> { declare readonly code: 'PathValidation' }
export class QueryValidationError extends ApiError<QueryValidationIssue> { declare readonly code: 'QueryValidation' }
export class RateLimitExceededError extends ApiError<RateLimitExceededIssue> { declare readonly code: 'RateLimitExceeded' }
export class UnprocessableEntityError extends ApiError<UnprocessableEntityIssue> { declare readonly code: 'UnprocessableEntity' }

/** An error of a known code. Narrow it by `code`. */
export type KnownApiError =
  | AmountAboveUpperLimitError
  | AmountBelowLowerLimitError
  | BadRequestError
  | BankAccountInvalidError
  | BodyValidationError
  | ConflictError
  | FileContentError
  | ForbiddenError
  | HeaderValidationError
  | InternalServerError
  | InvalidAddMemberPayloadError
  | InvalidRemoveMemberPayloadError
  | InvalidUpdateMemberPayloadError
  | MemberAlreadyInvitedError
  | MemberInsufficientFundsError
  | MemberNotEligibleError
  | MemberNotFoundError
  | NotFoundError
  | PathValidationError
  | QueryValidationError
  | RateLimitExceededError
  | UnprocessableEntityError

export const errorClasses: Record<string, (new (issues: never[], response: ErrorResponse) => ApiError) | undefined> = {
  AmountAboveUpperLimit: AmountAboveUpperLimitError,
  AmountBelowLowerLimit: AmountBelowLowerLimitError,
  BadRequest: BadRequestError,
  BankAccountInvalid: BankAccountInvalidError,
  BodyValidation: BodyValidationError,
  Conflict: ConflictError,
  FileContent: FileContentError,
  Forbidden: ForbiddenError,
  HeaderValidation: HeaderValidationError,
  InternalServerError: InternalServerError,
  InvalidAddMemberPayload: InvalidAddMemberPayloadError,
  InvalidRemoveMemberPayload: InvalidRemoveMemberPayloadError,
  InvalidUpdateMemberPayload: InvalidUpdateMemberPayloadError,
  MemberAlreadyInvited: MemberAlreadyInvitedError,
  MemberInsufficientFunds: MemberInsufficientFundsError,
  MemberNotEligible: MemberNotEligibleError,
  MemberNotFound: MemberNotFoundError,
  NotFound: NotFoundError,
  PathValidation: PathValidationError,
  QueryValidation: QueryValidationError,
  RateLimitExceeded: RateLimitExceededError,
  UnprocessableEntity: UnprocessableEntityError,
}
