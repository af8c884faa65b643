import { Type } from 'typebox'
import { wordOf } from '../kernel/schemas.ts'

/**
 * Any header value, including inner spaces and tabs; HTTP trims them at the ends, and octets beyond ASCII are Latin-1.
 * The check constraint on `idempotency_keys.key` has the same maximum length.
 */
export const idempotencyKeyPattern =
  '^[\\x21-\\x7e\\x80-\\xff]([\\t\\x20-\\x7e\\x80-\\xff]{0,1022}[\\x21-\\x7e\\x80-\\xff])?$'

export const IdempotencyHeader = Type.Object({
  'x-idempotency-key': Type.Optional(
    Type.String({
      pattern: idempotencyKeyPattern,
      description:
        'Makes the request safe to retry: for 7 days, the same key with the same request returns the first answer again, without a second effect. 1 to 1,024 characters; spaces are allowed inside.',
      examples: ['3f0c1f6e-8f5d-4c1e-9a53-0a8f0f0a7f11'],
    }),
  ),
})

export const responseHeaders = {
  'x-request-id': Type.String({ description: 'Identifies this request in the log. Quote it to support.' }),
  'ratelimit-policy': Type.String({ description: 'The quota: `q` requests in `w` seconds.' }),
  ratelimit: Type.String({
    description: 'The remaining quota (`r`), and the seconds until it is full again (`t`).',
  }),
}

export const replayedHeader = {
  'idempotency-replayed': Type.String({
    description: '`true` if this is the stored answer to an earlier request with the same key.',
  }),
}
export const shouldRetryHeader = {
  'x-should-retry': wordOf(['true', 'false'], {
    description:
      '`true` if you should repeat the request unchanged (after `retry-after`, if set): it can then succeed, and cannot take effect twice. Otherwise `false`.',
  }),
}
export const retryHeader = { 'retry-after': Type.String({ description: 'Seconds to wait before a retry, if known.' }) }
export const deprecationHeaders = {
  deprecation: Type.String({
    description: 'When the operation was deprecated: `@` and seconds since 1970 (RFC 9745).',
  }),
  sunset: Type.String({ description: 'When the operation will be removed (RFC 8594).' }),
  link: Type.String({ description: 'The operation that replaces this one.' }),
}
