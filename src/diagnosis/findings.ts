import {
  type Check,
  type DatabaseFacts,
  type DatabaseFault,
  type Finding,
  type Found,
  missing,
  type SettingsFacts,
} from './finding.ts'
import { partnerChecks } from './partner-checks.ts'
import { serverChecks } from './server-checks.ts'
import { settingChecks } from './setting-checks.ts'
import { workChecks } from './work-checks.ts'

/** Everything that is missing, might go wrong or is fine, most urgent first. */
export function diagnose(settings: SettingsFacts, database: DatabaseFacts | DatabaseFault): Finding[] {
  const findings =
    'sentence' in database
      ? [...settingChecks.flatMap(check => run(check, settings)), { check: 'database', ...missing(database) }]
      : [
          ...settingChecks.flatMap(check => run(check, settings)),
          ...databaseChecks.flatMap(check => run(check, { ...settings, ...database })),
        ]
  return levels.flatMap(level => findings.filter(each => each.level === level))
}

const levels = ['missing', 'warning', 'hint', 'ok'] as const

function run<Needed>({ name, find, fine }: Check<Needed>, facts: Needed): Finding[] {
  const found = [find(facts)].flat().filter(each => each !== null)
  const sentence = found.length > 0 ? '' : fine(facts)
  const all: Found[] = sentence === '' ? found : [{ level: 'ok', sentence, command: null }]
  return all.map(each => ({ check: name, ...each }))
}

const databaseChecks = [...serverChecks, ...partnerChecks, ...workChecks]
