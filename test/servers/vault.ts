import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { fromBase64, type KeyRequest, type KeyResponse, type KeyService, startKeyService } from './key-service.ts'

export const vaultToken = 'hvs.CAESIJ-token-of-the-tests'

/** The responses of Vault 1.15, as its HTTP API documentation and its source have them. */
export const vaultFaults = {
  sealed: { status: 503, body: { errors: ['Vault is sealed'] } },
  denied: { status: 403, body: { errors: ['1 error occurred:\n\t* permission denied\n\n'] } },
  noKey: { status: 400, body: { errors: ['encryption key not found'] } },
  noMount: {
    status: 404,
    body: { errors: ['no handler for route "other/encrypt/midmonth". route entry not found.'] },
  },
  notDecrypted: { status: 400, body: { errors: ['cipher: message authentication failed'] } },
} satisfies Record<string, KeyResponse>

/**
 * Vault's transit engine, mounted at `transit` in the namespace `payroll`.
 * @param keys the names of its keys
 */
export async function startVault({ keys }: { keys: string[] }): Promise<KeyService & { rotate(name: string): void }> {
  const versions = new Map(keys.map(name => [name, [randomBytes(32)]]))
  const service = await startKeyService(request => answer(request, versions))
  return { ...service, rotate: name => versions.get(name)?.push(randomBytes(32)) }
}

function answer({ method, path, headers, body }: KeyRequest, versions: Map<string, Buffer[]>): KeyResponse {
  const [, mount, operation, name = ''] = /^\/v1\/(.+)\/(encrypt|decrypt)\/([^/]+)$/.exec(path) ?? []
  if (method !== 'POST' || mount !== 'transit' || headers['x-vault-namespace'] !== 'payroll') return vaultFaults.noMount
  if (headers['x-vault-token'] !== vaultToken) return vaultFaults.denied
  const keys = versions.get(name)
  if (keys === undefined) return vaultFaults.noKey
  const data = JSON.parse(body)
  if (operation === 'encrypt') {
    const version = keys.length
    const iv = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', keys.at(-1) ?? '', iv)
    const parts = [iv, cipher.update(fromBase64(data.plaintext)), cipher.final(), cipher.getAuthTag()]
    return success({ ciphertext: `vault:v${version}:${Buffer.concat(parts).toString('base64')}`, key_version: version })
  }
  const [prefix, version = '', text = ''] = String(data.ciphertext).split(':')
  const key = keys[Number(version.slice(1)) - 1]
  if (prefix !== 'vault' || key === undefined)
    return { status: 400, body: { errors: ['invalid ciphertext: no prefix'] } }
  try {
    const bytes = Buffer.from(text, 'base64')
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12)).setAuthTag(bytes.subarray(-16))
    const plain = Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()])
    return success({ plaintext: plain.toString('base64') })
  } catch {
    return vaultFaults.notDecrypted
  }
}

function success(data: object): KeyResponse {
  const lease = { lease_id: '', renewable: false, lease_duration: 0 }
  return {
    status: 200,
    body: {
      request_id: '8cf0b2a1-0f6a-4d8b-9a51-1f3b1b2f6d11',
      ...lease,
      data,
      wrap_info: null,
      warnings: null,
      auth: null,
    },
  }
}
