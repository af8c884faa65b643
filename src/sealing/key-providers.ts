import { existsSync } from 'node:fs'
import path from 'node:path'
import { type Settings, SettingsProblem } from '../config.ts'
import { localKey, readKeyFile } from './providers/local-key.ts'
import type { KeyProvider } from './providers/provider.ts'

/** Where the wrapping key is: the key itself in the environment, or the path of a file, which may not exist yet. */
export type KeySource = { key: string } | { file: string }

/** The settings that choose the key. */
export const keySettingNames = ['MIDMONTH_INSTALLATION_KEY', 'MIDMONTH_INSTALLATION_KEY_FILE'] as const
type KeySettingName = (typeof keySettingNames)[number]
type KeySettings = Pick<Settings, KeySettingName>

/**
 * Reads the settings of the key. By default the key is in a file beside the data folder, so that a copy of the data does not
 * contain the key.
 * @throws SettingsProblem if settings of two providers are given
 */
export function keySourceOf(settings: KeySettings, { dataDir }: { dataDir: string }): KeySource {
  return configuredSource(settings) ?? { file: path.resolve(path.join(`${dataDir}-key`, 'installation.key')) }
}

/** Like `keySourceOf`, but undefined if no setting names a key. */
export function configuredSource({
  MIDMONTH_INSTALLATION_KEY: key,
  MIDMONTH_INSTALLATION_KEY_FILE: file,
}: KeySettings): KeySource | undefined {
  if (key !== '' && file !== '')
    throw new SettingsProblem('Set MIDMONTH_INSTALLATION_KEY or MIDMONTH_INSTALLATION_KEY_FILE, not both')
  if (key !== '') return { key }
  return file === '' ? undefined : { file: path.resolve(file) }
}

/** The settings that choose this source. */
export function settingNamesOf(source: KeySource): KeySettingName[] {
  return ['key' in source ? 'MIDMONTH_INSTALLATION_KEY' : 'MIDMONTH_INSTALLATION_KEY_FILE']
}

/** Names the place of the key, for messages. */
export function placeOf(source: KeySource): string {
  return 'key' in source ? 'MIDMONTH_INSTALLATION_KEY' : source.file
}

/**
 * Opens the provider. Connects to nothing.
 * @returns undefined if the key file does not exist
 * @throws SettingsProblem if the key cannot be used
 */
export async function openProvider(source: KeySource): Promise<KeyProvider | undefined> {
  if ('file' in source && !existsSync(source.file)) return undefined
  return localKey('key' in source ? source.key : await readKeyFile(source.file), placeOf(source))
}
