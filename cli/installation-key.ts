import { parseEnv } from 'node:util'
import { Option } from 'commander'
import { systemClock } from '../src/clock.ts'
import { readSettings, type Settings, SettingsProblem } from '../src/config.ts'
import type { Db, Tx } from '../src/database/database.ts'
import { openLatestKeys } from '../src/members/key-checks.ts'
import type { Database } from '../src/open-database.ts'
import { openKeys, openSealer } from '../src/sealing/installation-keys.ts'
import { copyKeys, listCopies, removeCopy } from '../src/sealing/key-copies.ts'
import {
  configuredSource,
  givenSettings,
  type KeySource,
  keySettingNames,
  openProvider,
  placeOf,
} from '../src/sealing/key-providers.ts'
import { type Rotating, rotateFingerprints, rotateSealing } from '../src/sealing/rotation.ts'
import { readSecret } from '../src/secret-file.ts'
import { recordChange } from './actor.ts'
import { PrintingCommand } from './command.ts'
import { examples } from './help.ts'
import { countOf, print, printResult } from './print.ts'
import { terminal, writeErrorLine } from './terminal.ts'
import { withUnopenedKeys } from './with-database.ts'

const limits = {
  // Enough to be certain, and read in a moment.
  checkedMembersMax: 100,
}

export const installationKeyCommand = new PrintingCommand('installation-key').description(
  'Manage the installation’s key, which opens the sealed values of the database. See docs/operations/keys.md.',
)

type Other = { settings?: string; file?: string; json?: boolean }

installationKeyCommand
  .command('list')
  .description('List the keys that open this database.')
  .examples('installation-key list')
  .action(async ({ json }: { json?: boolean }) => {
    await withUnopenedKeys(async ({ db, keySource }) => {
      // Also without the key, or while its service is down: the list says which key is needed.
      const configured = (await openProvider(keySource))?.id
      const copies = await listCopies(db)
      print(
        copies.map(copy => ({
          key: copy.provider,
          place: copy.provider === configured ? placeOf(keySource) : null,
          'in use': copy.provider === configured,
          complete: copy.isComplete,
          created: copy.createdAt.toISOString(),
        })),
        json ? { json } : {},
      )
    })
  })

installationKeyCommand
  .command('check')
  .description('Prove that a key opens this database, for example one from its backup. Changes nothing.')
  .addOption(settingsOption())
  .addOption(fileOption())
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    `\nWithout an option, the configured key is checked.\n${examples('installation-key check', 'installation-key check --file escrow.key')}`,
  )
  .action(async (other: Other) => {
    await withUnopenedKeys(async ({ db, keySource }) => {
      const source = (await otherKey(other))?.source ?? keySource
      const { provider, keys } = await openKeys(db, source)
      await openSealer(db, source)
      const members = await db
        .transaction()
        .setAccessMode('read only')
        .execute(tx => openLatestKeys(tx, { take: limits.checkedMembersMax }))
      printResult(other, {
        value: { key: provider.id, place: placeOf(source), keys: keys.length, members },
        text: () =>
          `The key ${provider.id} (${placeOf(source)}) opens this database: ${countOf(keys.length, 'key')} of the installation, ` +
          `and the keys of the latest ${countOf(members, 'member')}. Nothing was changed.`,
      })
    })
  })

installationKeyCommand
  .command('copy')
  .description(
    'Let another key open this database too, to move to it or to keep it in escrow. Creates the key file if it does not exist. Running processes are not disturbed.',
  )
  .addOption(settingsOption())
  .addOption(fileOption())
  .examples('installation-key copy --settings new-key.env', 'installation-key copy --file escrow.key')
  .action(async (other: Other) => {
    await withUnopenedKeys(
      async (database, settings) => {
        const { db, keySource, erasures } = database
        const to = await otherKey(other)
        if (to === undefined)
          throw new SettingsProblem(
            'Name the other key with --settings or --file; see midmonth installation-key copy --help',
          )
        const now = systemClock()
        const copied = await copyKeys(db, {
          ...{ from: keySource, to: to.source, now },
          record: async (tx, id) => {
            const change = { action: 'installation_key.copy', resourceId: id, details: {} } as const
            await recordChange(tx, { partnerId: null, change, now })
          },
        })
        printResult(other, {
          value: { ...copied, place: placeOf(to.source) },
          text: () => copiedInWords(copied, { to, settings, erasures }),
        })
      },
      { as: 'owner' },
    )
  })

installationKeyCommand
  .command('remove')
  .description('Stop a key from opening this database, after a move or if it is no longer secret.')
  .argument('<key>', 'the key’s id, as midmonth installation-key list shows it')
  .examples('installation-key remove 0f3a9c52e1b84d67')
  .action(async (id: string, options: { json?: boolean }) => {
    await withUnopenedKeys(
      async ({ db, keySource }) => {
        const now = systemClock()
        const { hasChanged } = await removeCopy(db, {
          ...{ id, source: keySource },
          record: async tx => {
            const change = { action: 'installation_key.remove', resourceId: id, details: {} } as const
            await recordChange(tx, { partnerId: null, change, now })
          },
        })
        printResult(options, {
          value: { key: id, hasChanged },
          text: () =>
            hasChanged
              ? `The key ${id} no longer opens this database. Backups from before still need it: destroy it with the last of them.`
              : `The key ${id} does not open this database; see midmonth installation-key list.`,
        })
      },
      { as: 'owner' },
    )
  })

installationKeyCommand
  .command('rotate')
  .description(
    'Replace the key that seals values with a new one and seal everything again, while the service runs. If this is interrupted, run it again to continue.',
  )
  .option('--fingerprints', 'replace the key by which sealed values are found and compared instead')
  .option('--others-in-escrow', 'no process uses another key of this database; copy the keys to each again afterwards')
  .examples('installation-key rotate', 'installation-key rotate --fingerprints')
  .action(async ({ fingerprints, othersInEscrow = false, ...options }: RotateOptions) => {
    await withUnopenedKeys(
      async ({ db, keySource: source }) => {
        const now = systemClock()
        const startedAt = performance.now()
        const rotating = {
          ...{ source, now, othersInEscrow },
          onStep: (step: string) => writeErrorLine(`${step} …`),
          record: async (tx: Tx, { number }: { number: number }) => {
            const change = { action: 'installation_key.rotate', resourceId: String(number), details: {} } as const
            await recordChange(tx, { partnerId: null, change, now })
          },
        }
        const { rotated, said } = fingerprints ? await fingerprintsAgain(db, rotating) : await sealAgain(db, rotating)
        const lacking = (await listCopies(db)).filter(({ isComplete }) => !isComplete).map(({ provider }) => provider)
        printResult(options, {
          value: { ...rotated, lacking },
          text: () =>
            [
              `${said} This took ${Math.round((performance.now() - startedAt) / 1_000)} s.`,
              ...lacking.map(
                id => `The key ${id} opens only the earlier ones; run midmonth installation-key copy for it again.`,
              ),
              'Take a backup now; if you dump the keys apart, take both dumps: keys from now on do not open all of a dump from before.',
            ].join('\n'),
        })
      },
      { as: 'owner' },
    )
  })

type RotateOptions = { fingerprints?: boolean; othersInEscrow?: boolean; json?: boolean }

async function sealAgain(db: Db, rotating: Rotating) {
  const { sealedTables } = await import('../src/operators/sealed-tables.ts')
  const rotated = await rotateSealing(db, { ...rotating, tables: sealedTables })
  const said = `Values are sealed with key ${rotated.number} now; ${countOf(rotated.rewrapped, 'row')} were sealed again.`
  return { rotated, said }
}

async function fingerprintsAgain(db: Db, rotating: Rotating) {
  const [{ rehash }, { countLeftOut }] = await Promise.all([
    import('../src/operators/rehash.ts'),
    import('../src/members/rehash.ts'),
  ])
  const rotated = await rotateFingerprints(db, { ...rotating, rehash })
  const leftOut = await countLeftOut(db)
  const said = [
    `Members are found by fingerprints with key ${rotated.number} now.`,
    ...(leftOut === 0
      ? []
      : [`${countOf(leftOut, 'member')} without keys kept the old ones; restore the keys and rotate again.`]),
  ]
  return { rotated: { ...rotated, leftOut }, said: said.join(' ') }
}

function settingsOption(): Option {
  return new Option('--settings <file>', 'a file with the settings of the other key, as in the environment').conflicts(
    'file',
  )
}

function fileOption(): Option {
  return new Option('--file <file>', 'the file that holds the other key')
}

/** The key that the options name, and the settings that choose it; undefined without an option. */
async function otherKey({
  settings: file,
  file: keyFile,
}: Other): Promise<{ source: KeySource; names: string[] } | undefined> {
  if (file === undefined && keyFile === undefined) return undefined
  const given = file === undefined ? { MIDMONTH_INSTALLATION_KEY_FILE: keyFile } : parseEnv(await readSecret(file))
  const foreign = Object.keys(given).filter(name => !keySettingNames.some(each => each === name))
  if (foreign.length > 0)
    throw new SettingsProblem(`${file}: ${foreign.join(', ')} does not choose a key; see docs/operations/keys.md`)
  const aws = Object.entries(terminal().env).filter(([name]) => name.startsWith('AWS_'))
  const settings = readSettings({ ...Object.fromEntries(aws), ...given })
  const source = configuredSource(settings)
  if (source === undefined) throw new SettingsProblem(`${file} chooses no key; see docs/operations/keys.md`)
  return { source, names: givenSettings(settings) }
}

type Copied = { from: string; to: string; hasChanged: boolean }

function copiedInWords(
  { from, to, hasChanged }: Copied,
  {
    to: { source, names },
    settings,
    erasures,
  }: { to: { source: KeySource; names: string[] }; settings: Settings } & Pick<Database, 'erasures'>,
): string {
  if (from === to)
    return [
      `The key ${to} is now ${placeOf(source)}: the earlier key of the same name no longer opens this database.`,
      `Set ${names.join(', ')}, and restart every process. Those that run notice nothing, but start only with the new settings.`,
    ].join('\n')
  const dropped = givenSettings(settings).filter(name => !names.includes(name))
  return [
    hasChanged ? `The key ${to} now opens this database too.` : `The key ${to} opens this database already.`,
    'To keep it in escrow, you are done; midmonth installation-key check proves that it opens the database.',
    'To move to it:',
    `  1. Set ${names.join(', ')}${dropped.length === 0 ? '' : `, remove ${dropped.join(', ')}`}, and restart every process.`,
    // Its default may be beside the key file: the service would begin an empty journal elsewhere.
    ...(settings.MIDMONTH_ERASURE_JOURNAL === '' && settings.MIDMONTH_STATE_DIR === ''
      ? [`     Set MIDMONTH_ERASURE_JOURNAL=${erasures.journal} too, where the journal of erasures is now.`]
      : []),
    `  2. With the new settings, run midmonth installation-key remove ${from}`,
  ].join('\n')
}
