import { existsSync } from 'node:fs'
import path from 'node:path'
import { type Settings, SettingsProblem } from '../config.ts'
import { awsSettingNames } from './providers/aws-credentials.ts'
import type { KmsKey } from './providers/aws-kms.ts'
import { localKey, readKeyFile } from './providers/local-key.ts'
import type { KeyProvider } from './providers/provider.ts'
import { describeVaultKey, type VaultKey, vaultKey } from './providers/vault.ts'

/** Where the wrapping key is: the key itself in the environment, the path of a file, which may not exist yet, or a service. */
export type KeySource = { key: string } | { file: string } | { vault: VaultKey } | { kms: KmsKey }

/** The settings of each provider. The first one chooses it. */
const settingNames = {
  key: ['MIDMONTH_INSTALLATION_KEY'],
  file: ['MIDMONTH_INSTALLATION_KEY_FILE'],
  vault: [
    'MIDMONTH_VAULT_KEY',
    'MIDMONTH_VAULT_ADDRESS',
    'MIDMONTH_VAULT_NAMESPACE',
    'MIDMONTH_VAULT_TOKEN',
    'MIDMONTH_VAULT_TOKEN_FILE',
  ],
  kms: ['MIDMONTH_AWS_KMS_KEY', 'MIDMONTH_AWS_KMS_ENDPOINT'],
} as const
const kinds = ['key', 'file', 'vault', 'kms'] as const

/** The settings of all providers. */
export const keySettingNames = [...kinds.flatMap(kind => settingNames[kind]), ...awsSettingNames]
type KeySettingName = (typeof keySettingNames)[number]
type KeySettings = Pick<Settings, KeySettingName>

/**
 * Reads the settings of the key. By default the key is in a file of the state folder.
 * @throws SettingsProblem if settings of two providers are given
 */
export function keySourceOf(settings: KeySettings & StateSettings, { dataDir }: { dataDir: string }): KeySource {
  return configuredSource(settings) ?? { file: path.join(stateDirOf(settings, { dataDir }), 'installation.key') }
}

type StateSettings = Pick<Settings, 'MIDMONTH_STATE_DIR'>

/** The folder of the key and the journal of erasures. By default it is beside the data folder, so that neither is in a copy of the data. */
export function stateDirOf({ MIDMONTH_STATE_DIR: folder }: StateSettings, { dataDir }: { dataDir: string }): string {
  return path.resolve(folder === '' ? `${dataDir}-key` : folder)
}

/** Like `keySourceOf`, but undefined if no setting chooses a key. */
export function configuredSource(settings: KeySettings): KeySource | undefined {
  const chosen = kinds.filter(kind => settings[settingNames[kind][0]] !== '')
  if (chosen.length > 1) {
    const [first, second] = chosen.map(kind => settingNames[kind][0])
    throw new SettingsProblem(`Set ${first} or ${second}, not both: the installation has one key`)
  }
  const [kind] = chosen
  const idle = kinds.flatMap(each => (each === kind ? [] : settingNames[each].filter(name => settings[name] !== '')))[0]
  if (idle !== undefined) throw new SettingsProblem(`${idle} has no effect without ${chooserOf(idle)}`)
  if (settings.MIDMONTH_VAULT_TOKEN !== '' && settings.MIDMONTH_VAULT_TOKEN_FILE !== '')
    throw new SettingsProblem('Set MIDMONTH_VAULT_TOKEN or MIDMONTH_VAULT_TOKEN_FILE, not both')
  if (kind === 'vault' && settings.MIDMONTH_VAULT_ADDRESS === '')
    throw new SettingsProblem('MIDMONTH_VAULT_KEY needs MIDMONTH_VAULT_ADDRESS, like https://vault.example.com:8200')
  if (kind === 'kms' && (settings.AWS_ACCESS_KEY_ID === '') !== (settings.AWS_SECRET_ACCESS_KEY === ''))
    throw new SettingsProblem('Set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither')
  return kind && sources[kind](settings)
}

const chooserOf = (name: string) =>
  kinds.map(kind => settingNames[kind]).find(names => names.some(each => each === name))?.[0]

const sources: Record<(typeof kinds)[number], (settings: KeySettings) => KeySource> = {
  key: settings => ({ key: settings.MIDMONTH_INSTALLATION_KEY }),
  file: settings => ({ file: path.resolve(settings.MIDMONTH_INSTALLATION_KEY_FILE) }),
  vault: settings => ({
    vault: {
      address: settings.MIDMONTH_VAULT_ADDRESS,
      key: settings.MIDMONTH_VAULT_KEY,
      namespace: settings.MIDMONTH_VAULT_NAMESPACE,
      token: settings.MIDMONTH_VAULT_TOKEN,
      tokenFile: settings.MIDMONTH_VAULT_TOKEN_FILE,
    },
  }),
  kms: settings => ({
    kms: { arn: settings.MIDMONTH_AWS_KMS_KEY, endpoint: settings.MIDMONTH_AWS_KMS_ENDPOINT, aws: settings },
  }),
}

/** The settings that are given, and choose the key. */
export function givenSettings(settings: KeySettings): KeySettingName[] {
  return kinds.flatMap(kind => settingNames[kind]).filter(name => settings[name] !== '')
}

/** Names the place of the key, for messages. */
export function placeOf(source: KeySource): string {
  if ('vault' in source) return `Vault’s key ${describeVaultKey(source.vault)}`
  if ('kms' in source) return `the AWS KMS key ${source.kms.arn}`
  return 'key' in source ? 'MIDMONTH_INSTALLATION_KEY' : source.file
}

/** Names the key and its place, to people. @throws SettingsProblem if the key cannot be used */
export async function describeKey(source: KeySource): Promise<string> {
  const provider = 'key' in source || 'file' in source ? await openProvider(source) : undefined
  return provider === undefined ? placeOf(source) : `${provider.id} in ${placeOf(source)}`
}

/**
 * Opens the provider. Connects to nothing.
 * @returns undefined if the key file does not exist
 * @throws SettingsProblem if the key cannot be used
 */
export async function openProvider(source: KeySource): Promise<KeyProvider | undefined> {
  if ('vault' in source) return vaultKey(source.vault)
  // Loaded late, because every command loads this module.
  if ('kms' in source) return (await import('./providers/aws-kms.ts')).kmsKey(source.kms)
  if ('file' in source && !existsSync(source.file)) return undefined
  return localKey('key' in source ? source.key : await readKeyFile(source.file), placeOf(source))
}
