import { type Static, Type } from 'typebox'
import { SettingsProblem } from '../../config.ts'
import { ajv } from '../../kernel/json-schema.ts'
import { readSecretLine, SecretFileProblem } from '../../secret-file.ts'
import type { KeyProvider } from './provider.ts'
import { exchange, isUnavailable, parse, type Reply } from './requests.ts'

/** A key of the transit engine of HashiCorp Vault, or of OpenBao. */
export type VaultKey = {
  address: string
  /** Where the engine is mounted, and the name of the key: `transit/midmonth`. */
  key: string
  namespace: string
  token: string
  tokenFile: string
}

export const describeVaultKey = ({ key, address }: VaultKey) => `${key} at ${address}`

const Encrypted = Type.Object({ data: Type.Object({ ciphertext: Type.String({ pattern: '^vault:v[0-9]+:.+$' }) }) })
const Decrypted = Type.Object({ data: Type.Object({ plaintext: Type.String() }) })
const Refusal = Type.Object({ errors: Type.Array(Type.String()) })
const isEncrypted = ajv.compile<Static<typeof Encrypted>>(Encrypted)
const isDecrypted = ajv.compile<Static<typeof Decrypted>>(Decrypted)
const isRefusal = ajv.compile<Static<typeof Refusal>>(Refusal)

/**
 * Wraps with a key that never leaves Vault. A wrapped key is Vault's ciphertext, which names the version of Vault's key.
 * Source: Vault's API documentation, "Transit secrets engine"
 */
export function vaultKey(vault: VaultKey, options: { attemptMsMax?: number } = {}): KeyProvider {
  const { address, key, namespace } = vault
  const place = `The key ${describeVaultKey(vault)}`
  const [mount, name] = [key.slice(0, key.lastIndexOf('/')), key.slice(key.lastIndexOf('/') + 1)]

  async function call(operation: 'encrypt' | 'decrypt', body: object): Promise<Reply> {
    const token = await readToken(vault)
    const request = () =>
      new Request(`${address.replace(/\/$/, '')}/v1/${mount}/${operation}/${name}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          // Vault’s agent refuses requests without it, so that a browser cannot be tricked into sending one.
          'x-vault-request': 'true',
          ...(token !== '' && { 'x-vault-token': token }),
          ...(namespace !== '' && { 'x-vault-namespace': namespace }),
        },
        body: JSON.stringify(body),
      })
    const reply = await exchange(`Vault at ${address}`, request, options)
    if (reply.status !== 200) throw refusalOf(reply, { operation, place, address })
    return reply
  }

  return {
    id: `vault:${namespace === '' ? '' : `${namespace}/`}${key}`,
    async wrap(unwrapped) {
      const body = parse(await call('encrypt', { plaintext: unwrapped.toString('base64') }), isEncrypted)
      if (body === undefined) throw notVault(address)
      return Buffer.from(body.data.ciphertext)
    },
    async unwrap(wrapped) {
      const body = parse(await call('decrypt', { ciphertext: wrapped.toString() }), isDecrypted)
      if (body === undefined) throw notVault(address)
      return Buffer.from(body.data.plaintext, 'base64')
    },
  }
}

async function readToken({ token, tokenFile }: VaultKey): Promise<string> {
  if (tokenFile === '') return token
  try {
    return await readSecretLine(tokenFile)
  } catch (cause) {
    if (!(cause instanceof SecretFileProblem)) throw cause
    throw new SettingsProblem(`The file of MIDMONTH_VAULT_TOKEN_FILE cannot be used: ${cause.message}`, { cause })
  }
}

/** Never has Vault's own words, which are for Vault's administrator. */
function refusalOf(
  reply: Reply,
  { operation, place, address }: { operation: 'encrypt' | 'decrypt'; place: string; address: string },
): Error {
  const { status } = reply
  const words = parse(reply, isRefusal)?.errors.join(' ') ?? ''
  if (status === 503 && /sealed/.test(words))
    return new Error(`Vault at ${address} is sealed; unseal it, then try again`)
  if (isUnavailable(reply)) return new Error(`Vault at ${address} is unavailable (${status}); try again later`)
  if (status === 403)
    return new SettingsProblem(
      `${place} does not exist, or may not be used with this token (403); the token needs a policy with update on its paths encrypt and decrypt`,
    )
  if (status === 404 || /key not found/.test(words))
    return new SettingsProblem(`${place} does not exist; set MIDMONTH_VAULT_KEY to the mount and the name of the key`)
  if (status === 400 && operation === 'decrypt')
    return new SettingsProblem(
      `${place} does not open what this database has stored: it is another key of this name, or the stored value was changed`,
    )
  return new SettingsProblem(
    `Vault at ${address} refuses to ${operation} (${status}); check MIDMONTH_VAULT_ADDRESS and the kind of the key`,
  )
}

function notVault(address: string): SettingsProblem {
  return new SettingsProblem(`The response of ${address} is not Vault’s; check MIDMONTH_VAULT_ADDRESS`)
}
