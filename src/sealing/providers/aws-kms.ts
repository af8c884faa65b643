import { AwsV4Signer } from 'aws4fetch'
import { type Static, Type } from 'typebox'
import { SettingsProblem } from '../../config.ts'
import { ajv } from '../../kernel/json-schema.ts'
import { type AwsSettings, readAwsCredentials } from './aws-credentials.ts'
import type { KeyProvider } from './provider.ts'
import { exchange, isUnavailable, parse, type Reply } from './requests.ts'

/** A symmetric key of AWS KMS. */
export type KmsKey = {
  /** `arn:aws:kms:eu-west-1:111122223333:key/…`, which names the region. */
  arn: string
  /** Where KMS is reached; empty for its public address in the region. */
  endpoint: string
  aws: AwsSettings
}

const Encrypted = Type.Object({ CiphertextBlob: Type.String({ minLength: 1 }) })
const Decrypted = Type.Object({ Plaintext: Type.String({ minLength: 1 }) })
const Refusal = Type.Object({ __type: Type.String() })
const isEncrypted = ajv.compile<Static<typeof Encrypted>>(Encrypted)
const isDecrypted = ajv.compile<Static<typeof Decrypted>>(Decrypted)
const isRefusal = ajv.compile<Static<typeof Refusal>>(Refusal)

// Authenticated by KMS, and in the log of its calls: what this key decrypts for others is not taken for an installation's key.
const EncryptionContext = { midmonth: 'installation key' }

/**
 * Wraps with a key that never leaves KMS.
 * Source: AWS KMS API Reference, "Encrypt" and "Decrypt", in the protocol AWS JSON 1.1
 */
export function kmsKey({ arn, endpoint, aws }: KmsKey, options: { attemptMsMax?: number } = {}): KeyProvider {
  const [, partition = '', , region = ''] = arn.split(':')
  const url = endpoint || `https://kms.${region}.amazonaws.com${partition === 'aws-cn' ? '.cn' : ''}`

  async function call(operation: 'Encrypt' | 'Decrypt', parameters: object): Promise<Reply> {
    const credentials = await readAwsCredentials(aws)
    const body = JSON.stringify({ KeyId: arn, EncryptionContext, ...parameters })
    const request = async () => {
      const signed = await new AwsV4Signer({
        ...{ url: `${url.replace(/\/$/, '')}/`, method: 'POST', body, service: 'kms', region },
        headers: { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': `TrentService.${operation}` },
        ...{ accessKeyId: credentials.accessKeyId, secretAccessKey: credentials.secretAccessKey },
        ...(credentials.sessionToken !== undefined && { sessionToken: credentials.sessionToken }),
        allHeaders: true,
      }).sign()
      return new Request(signed.url, { method: signed.method, headers: signed.headers, body })
    }
    const reply = await exchange(`AWS KMS at ${url}`, request, { ...options, isBusy: isThrottled })
    if (reply.status !== 200) throw refusalOf(reply, { arn, url })
    return reply
  }

  return {
    id: arn,
    async wrap(unwrapped) {
      const body = parse(await call('Encrypt', { Plaintext: unwrapped.toString('base64') }), isEncrypted)
      if (body === undefined) throw notKms(url)
      return Buffer.from(body.CiphertextBlob, 'base64')
    },
    async unwrap(wrapped) {
      const body = parse(await call('Decrypt', { CiphertextBlob: wrapped.toString('base64') }), isDecrypted)
      if (body === undefined) throw notKms(url)
      return Buffer.from(body.Plaintext, 'base64')
    },
  }
}

/** The name of KMS’s error, which some gateways prefix: `com.amazonaws.kms#NotFoundException`. */
function faultOf(reply: Reply): string {
  return parse(reply, isRefusal)?.__type.replace(/^.*#/, '') ?? ''
}

function isThrottled(reply: Reply): boolean {
  return /^(Throttling|LimitExceeded)/.test(faultOf(reply))
}

/** Never has KMS’s own words, which name accounts and roles. */
function refusalOf(reply: Reply, { arn, url }: { arn: string; url: string }): Error {
  const fault = faultOf(reply)
  const sentence = refusals.find(([pattern]) => pattern.test(fault))?.[1]
  if (sentence !== undefined) return new SettingsProblem(`The key ${arn} ${sentence} (${fault})`)
  if (isUnavailable(reply) || isThrottled(reply))
    return new Error(`AWS KMS at ${url} is unavailable (${reply.status} ${fault}); try again later`)
  return new SettingsProblem(
    `AWS KMS at ${url} refuses the request (${reply.status} ${fault}); check MIDMONTH_AWS_KMS_KEY and the AWS credentials`,
  )
}

const refusals: readonly [RegExp, string][] = [
  [
    /^AccessDenied/,
    'may not be used with these AWS credentials; they need kms:Encrypt and kms:Decrypt on it, in its policy or their own',
  ],
  [/^NotFound/, 'does not exist; set MIDMONTH_AWS_KMS_KEY to the ARN of the key'],
  [/^(Disabled|KMSInvalidState)/, 'is disabled or scheduled for deletion; enable it, or cancel its deletion'],
  [
    /^(InvalidCiphertext|IncorrectKey)/,
    'does not open what this database has stored: another key wrapped it, or the stored value was changed',
  ],
  [
    /^(UnrecognizedClient|InvalidSignature|SignatureDoesNotMatch|IncompleteSignature|ExpiredToken|InvalidClientTokenId|MissingAuthenticationToken)/,
    'cannot be used: the AWS credentials are wrong or have expired, or the clock of this machine is wrong',
  ],
]

function notKms(url: string): SettingsProblem {
  return new SettingsProblem(`The response of ${url} is not that of AWS KMS; check MIDMONTH_AWS_KMS_ENDPOINT`)
}
