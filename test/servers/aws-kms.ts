import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { fromBase64, type KeyRequest, type KeyResponse, type KeyService, startKeyService } from './key-service.ts'
import { signatureOf } from './signature-v4.ts'

export type Credentials = { id: string; secret: string; token?: string }
export const awsUser: Credentials = { id: 'AKIDEXAMPLE', secret: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }
export const awsRole: Credentials = { id: 'ASIAROLE', secret: 'secret+of/the/role', token: 'token+of/the=role' }

export const arnOf = (name: string) => `arn:aws:kms:eu-west-1:111122223333:key/${name}`

/** KMS's errors have a type and a message, which names accounts and roles. */
export const kmsFault = (type: string, status = 400): KeyResponse => ({
  status,
  body: { __type: type, message: 'User: arn:aws:iam::111122223333:user/ada is not authorized' },
})

type Key = { bytes: Buffer }

/** Encrypt and Decrypt of AWS KMS in eu-west-1, which check each request's signature. */
export async function startKms({ keys }: { keys: string[] }): Promise<KeyService> {
  const held = new Map(keys.map(arn => [arn, { bytes: randomBytes(32) }]))
  return await startKeyService(request => answer(request, held))
}

function answer(request: KeyRequest, keys: Map<string, Key>): KeyResponse {
  const { method, path, headers, body } = request
  if (method !== 'POST' || path !== '/' || headers['content-type'] !== 'application/x-amz-json-1.1')
    return kmsFault('UnknownOperationException')
  const refusal = refusalOf(request)
  if (refusal !== undefined) return kmsFault(refusal)
  const { KeyId, EncryptionContext, ...parameters } = JSON.parse(body)
  const key = keys.get(KeyId)
  if (key === undefined) return kmsFault('NotFoundException')
  const context = Buffer.from(JSON.stringify(EncryptionContext))
  switch (headers['x-amz-target']) {
    case 'TrentService.Encrypt': {
      const iv = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key.bytes, iv).setAAD(context)
      const parts = [iv, cipher.update(fromBase64(parameters.Plaintext)), cipher.final(), cipher.getAuthTag()]
      const CiphertextBlob = Buffer.concat([Buffer.from(`${KeyId} `), ...parts]).toString('base64')
      return { status: 200, body: { CiphertextBlob, EncryptionAlgorithm: 'SYMMETRIC_DEFAULT', KeyId } }
    }
    case 'TrentService.Decrypt': {
      const blob = fromBase64(parameters.CiphertextBlob)
      const end = blob.indexOf(' ')
      const arn = blob.toString('utf8', 0, Math.max(end, 0))
      if (!keys.has(arn)) return kmsFault('InvalidCiphertextException')
      if (arn !== KeyId) return kmsFault('IncorrectKeyException')
      try {
        const bytes = blob.subarray(end + 1)
        const decipher = createDecipheriv('aes-256-gcm', key.bytes, bytes.subarray(0, 12))
          .setAAD(context)
          .setAuthTag(bytes.subarray(-16))
        const Plaintext = Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]).toString('base64')
        return { status: 200, body: { EncryptionAlgorithm: 'SYMMETRIC_DEFAULT', KeyId, Plaintext } }
      } catch {
        return kmsFault('InvalidCiphertextException')
      }
    }
    default:
      return kmsFault('UnknownOperationException')
  }
}

/** Checks the signature as AWS does. @returns the error */
function refusalOf({ method, path, headers, body }: KeyRequest): string | undefined {
  const { authorization = '' } = headers
  const parts =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
      authorization,
    )
  if (parts === null) return 'IncompleteSignatureException'
  const [, id, day, region = '', service = '', names = '', signature] = parts
  const user = [awsUser, awsRole].find(each => each.id === id)
  const text = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
  if (user === undefined || text['x-amz-security-token'] !== user.token) return 'UnrecognizedClientException'
  if (region !== 'eu-west-1' || service !== 'kms') return 'SignatureDoesNotMatch'
  const date = text['x-amz-date'] ?? ''
  const at = Date.parse(date.replace(/^(....)(..)(..T..)(..)(..)Z$/, '$1-$2-$3:$4:$5Z'))
  if (date.slice(0, 8) !== day || !(Math.abs(Date.now() - at) < 300_000)) return 'InvalidSignatureException'
  const signed = names.split(';')
  // What is not signed could be changed on the way.
  const required = ['host', 'x-amz-date', 'x-amz-target', ...(user.token === undefined ? [] : ['x-amz-security-token'])]
  if (!required.every(name => signed.includes(name))) return 'IncompleteSignatureException'
  const { secret } = user
  const expected = signatureOf({ method, path, headers: text, body }, { secret, date, region, service, signed })
  return expected === signature ? undefined : 'InvalidSignatureException'
}
