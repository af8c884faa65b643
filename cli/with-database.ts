import pino from 'pino'
import { readSettings, type Settings } from '../src/config.ts'
import type { Tx } from '../src/db.ts'
import { type Database, openDatabase, prepare, systemClock } from '../src/main.ts'

/**
 * Does one thing on the database that the settings name and closes it again, whatever happens. The embedded PostgreSQL is
 * joined when the service has it running, or started for the while. Its schema is brought up to date first.
 */
export async function withDatabase<T>(work: (database: Database, settings: Settings) => Promise<T>): Promise<T> {
  const settings = readSettings(process.env)
  // Warnings go to standard error, so that the output can be piped.
  const database = await openDatabase(settings, pino({ level: 'warn' }, pino.destination({ dest: 2, sync: true })))
  try {
    // A command is a small installation of its own for a moment; with a DATABASE_URL the operator migrates.
    const both = settings.DATABASE_URL === ''
    await prepare(database, { settings, roles: { api: both, worker: both }, now: systemClock })
    return await work(database, settings)
  } finally {
    await database.close()
  }
}

/** Like `withDatabase`, in one transaction. */
export async function withTransaction<T>(work: (tx: Tx, settings: Settings) => Promise<T>): Promise<T> {
  return await withDatabase(({ db }, settings) => db.transaction().execute(tx => work(tx, settings)))
}

/** Prints rows as a table that lines up, or as JSON for a script. */
export function print(rows: Record<string, string | number | boolean | null>[], { json }: { json?: boolean }): void {
  if (json) {
    console.log(JSON.stringify(rows, null, 2))
    return
  }
  const names = Object.keys(rows[0] ?? {})
  const widths = names.map(name => Math.max(name.length, ...rows.map(row => String(row[name] ?? '–').length)))
  const line = (cells: string[]) =>
    cells
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd()
  console.log([line(names), ...rows.map(row => line(names.map(name => String(row[name] ?? '–'))))].join('\n'))
}
