import { Command } from 'commander'
import { systemClock } from '../src/clock.ts'
import { readSettings, type Settings } from '../src/config.ts'
import { describeNewerSchema, readSchemaState } from '../src/database/migrations.ts'
import {
  checkRails,
  type DatabaseFacts,
  type DatabaseFault,
  type Finding,
  type SettingsFacts,
} from '../src/diagnosis/finding.ts'
import { readFindingFacts } from '../src/diagnosis/finding-facts.ts'
import { diagnose } from '../src/diagnosis/findings.ts'
import { inspectJournal } from '../src/erasure/erasure.ts'
import { retentionOf } from '../src/kernel/retention.ts'
import { reasonOf } from '../src/kernel/text.ts'
import { openDatabase } from '../src/open-database.ts'
import { readRails } from '../src/rails.ts'
import { openSealer } from '../src/sealing/installation-keys.ts'
import { describeKey } from '../src/sealing/key-providers.ts'
import { examples } from './help.ts'
import { openLog } from './log.ts'
import { countOf, printResult } from './print.ts'
import { setExitCode, terminal } from './terminal.ts'

const limits = {
  // The JSON has all findings. A screen has room for a few of each kind, and the same command solves all of them.
  shownMax: 10,
}

export const doctorCommand = new Command('doctor')
  .description('Check what is missing before this installation can pay in live mode. Changes nothing.')
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    `
Levels: missing (live mode cannot pay until it is done), warning, hint (something that this program cannot check), ok.
Exit codes: 0 nothing is missing, 1 something is missing, 2 wrong settings.
${examples('doctor', 'doctor --json')}`,
  )
  .action(async options => {
    const settings = readSettings(terminal().env)
    const now = systemClock()
    const findings = await readFindings(settings, now)
    const isReady = !findings.some(({ level }) => level === 'missing')
    printResult(options, {
      value: { state: isReady ? 'ready' : 'notReady', at: now, findings },
      text: () => textOf(findings),
    })
    setExitCode(isReady ? 0 : 1)
  })

export async function readFindings(settings: Settings, now: Date): Promise<Finding[]> {
  return diagnose(await readSettingsFacts(settings, now), await readDatabase(settings, now))
}

async function readSettingsFacts(settings: Settings, now: Date): Promise<SettingsFacts> {
  // A fault of the file is a finding, so that the rest is still checked.
  const { MIDMONTH_MODE: mode, MIDMONTH_RAILS: railsFile, MIDMONTH_PUBLIC_URL: publicUrl } = settings
  const retention = retentionOf(settings)
  const facts = { now, mode, railsFile, publicUrl, retention }
  try {
    return { ...facts, rails: await checkRails(await readRails(settings)) }
  } catch (error) {
    return { ...facts, rails: reasonOf(error) }
  }
}

async function readDatabase(settings: Settings, now: Date): Promise<DatabaseFacts | DatabaseFault> {
  try {
    return await readDatabaseFacts(settings, now)
  } catch (error) {
    return { sentence: reasonOf(error), command: 'export DATABASE_URL=postgres://midmonth_app:PASSWORD@HOST/midmonth' }
  }
}

async function readDatabaseFacts(settings: Settings, now: Date): Promise<DatabaseFacts | DatabaseFault> {
  const { db, keySource, erasures, close } = await openDatabase(settings, openLog('warn'), {
    mayCreate: false,
    isStarting: false,
  })
  try {
    const schema = await readSchemaState(db)
    if (schema.pending.length > 0) {
      const sentence = `The database schema is out of date (pending: ${schema.pending.join(', ')})`
      return { sentence, command: 'midmonth migrate' }
    }
    const tooNew = describeNewerSchema(schema)
    if (tooNew !== undefined) return { sentence: tooNew, command: 'git pull && npm install --omit=dev' }
    // Before the transaction: the key may be in a service.
    const fault = await openSealer(db, keySource).then(() => undefined, reasonOf)
    const name = fault === undefined ? await describeKey(keySource) : ''
    // One snapshot, so that the findings agree with each other; read only, so that looking changes nothing.
    return await db
      .transaction()
      .setIsolationLevel('repeatable read')
      .setAccessMode('read only')
      .execute(async tx => ({
        isEmbedded: settings.DATABASE_URL === '',
        installationKey: { name, fault },
        erasureJournal: await inspectJournal(tx, erasures),
        ...(await readFindingFacts(tx, { mode: settings.MIDMONTH_MODE, retention: retentionOf(settings), now })),
      }))
  } finally {
    await close()
  }
}

function textOf(findings: Finding[]): string {
  const groups = [...Map.groupBy(findings, ({ level, check }) => `${level.padEnd(8)} ${check.padEnd(10)}`)]
  const indent = ' '.repeat(20)
  const lines = groups.flatMap(([label, all]) => [
    ...all
      .slice(0, limits.shownMax)
      .flatMap(({ sentence, command }) => [
        `${label} ${sentence}`,
        ...(command === null ? [] : [`${indent}$ ${command}`]),
      ]),
    ...(all.length > limits.shownMax
      ? [`${indent}… and ${all.length - limits.shownMax} more; see midmonth doctor --json`]
      : []),
  ])
  const count = (wanted: Finding['level']) => findings.filter(({ level }) => level === wanted).length
  const others = `${countOf(count('warning'), 'warning')}, ${countOf(count('hint'), 'hint')}`
  const verdict =
    count('missing') === 0
      ? `Nothing is missing: this installation can pay (${others}).`
      : `${countOf(count('missing'), 'thing')} ${count('missing') === 1 ? 'is' : 'are'} missing before live mode can pay (${others}).`
  return [...lines, '', verdict].join('\n')
}
