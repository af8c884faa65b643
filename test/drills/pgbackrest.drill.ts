import { execFile } from 'node:child_process'
import { appendFileSync, chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { serverUser } from '@midmonth/embedded-postgres'
import { midmonthHere } from '../program/program.ts'
import { createPostgres } from '../servers/postgres.ts'
import { Skipped } from './drill.ts'

export const title = 'a server of Debian’s PostgreSQL 15 is restored by pgBackRest to an instant, and payouts stop'

const binaries = '/usr/lib/postgresql/15'
const program = '/usr/bin/pgbackrest'

export async function run(say: (line: string) => void): Promise<void> {
  const missing = [`${binaries}/bin/postgres`, program].filter(file => !existsSync(file))
  if (missing.length > 0) throw new Skipped(`${missing.join(' and ')} are not installed (Debian: postgresql-15, pgbackrest)`)
}
