import { mkdir, open, readFile } from 'node:fs/promises'
import path from 'node:path'
import type { Settings } from '../config.ts'
import { problem } from '../kernel/errors.ts'
import { type KeySource, stateDirOf } from '../sealing/key-providers.ts'

/**
 * Erasures are also recorded outside the database: a database that is restored from a backup knows nothing of the later ones, and
 * erases these members again before it serves anything. A line is one erasure, or takes one back that was rolled back.
 */
export type JournalEntry = { partnerId: string; memberId: string; erasedAt: string }
type JournalLine = JournalEntry & { rolledBack?: true }

/**
 * What erasures need of the settings.
 * @property evidenceDays how long it stays known to which accounts an erased member was paid
 * @property backupDays how long the operator keeps backups of the database
 */
export type ErasureSettings = { journal: string; evidenceDays: number; backupDays: number }

/** By default the journal is in the configured state folder, or beside the key file. */
export function erasureSettingsOf(
  settings: Settings,
  place: { keySource: KeySource; dataDir: string },
): ErasureSettings {
  const { MIDMONTH_ERASURE_JOURNAL: file, MIDMONTH_STATE_DIR: stateDir } = settings
  const { MIDMONTH_PAYMENT_EVIDENCE_DAYS: evidenceDays, MIDMONTH_BACKUP_DAYS: backupDays } = settings
  const { keySource } = place
  const isBesideKey = stateDir === '' && 'file' in keySource
  const folder = isBesideKey ? path.dirname(keySource.file) : stateDirOf(settings, place)
  return { journal: path.resolve(file === '' ? path.join(folder, 'erasures.jsonl') : file), evidenceDays, backupDays }
}

/** Appends lines that survive a crash of the machine. @throws Problem `ServiceUnavailable` if they cannot be written */
export async function append(file: string, ...lines: JournalLine[]): Promise<void> {
  try {
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
    const journal = await open(file, 'a', 0o600)
    try {
      // One write, so that lines of several processes do not mix. It begins a line, in case a crash has cut the last one off.
      await journal.appendFile(`\n${lines.map(line => JSON.stringify(line)).join('\n')}\n`)
      await journal.sync()
    } finally {
      await journal.close()
    }
  } catch (cause) {
    const refusal = problem(
      'ServiceUnavailable',
      'The journal of erasures cannot be written, so nothing was erased; the operator has to set MIDMONTH_ERASURE_JOURNAL to a path in a writable folder',
    )
    refusal.cause = cause
    throw refusal
  }
}

/** The erasures that were not rolled back, the latest of each member. @throws Error if a whole line cannot be read */
export async function readJournal(file: string): Promise<JournalEntry[]> {
  const text = await readFile(file, 'utf8').catch(error => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  const entries = new Map<string, JournalEntry>()
  for (const [index, line] of text.split('\n').entries()) {
    // Empty, or cut off by a crash, before its erasure could commit.
    if (!line.endsWith('}')) continue
    const { rolledBack, ...entry } = parse(line, { file, number: index + 1 })
    const name = `${entry.partnerId} ${entry.memberId}`
    if (!rolledBack) entries.set(name, entry)
    // Another request may have erased the member since.
    else if (entries.get(name)?.erasedAt === entry.erasedAt) entries.delete(name)
  }
  return [...entries.values()]
}

function parse(line: string, { file, number }: { file: string; number: number }): JournalLine {
  try {
    const { partnerId, memberId, erasedAt, rolledBack } = JSON.parse(line)
    if (![partnerId, memberId].every(id => typeof id === 'string') || Number.isNaN(Date.parse(erasedAt)))
      throw new Error('It lacks a field')
    return { partnerId, memberId, erasedAt, ...(rolledBack === true ? { rolledBack } : {}) }
  } catch (cause) {
    throw new Error(
      `Line ${number} of the journal of erasures (${file}) cannot be read; restore the file from its backup, or delete the line if no erasure is lost`,
      { cause },
    )
  }
}
