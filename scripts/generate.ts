import { readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import pino from 'pino'
import { connect } from '../src/database/connect.ts'
import { startEmbeddedPostgres } from '../src/database/embedded.ts'
import { migrate } from '../src/database/migrate.ts'
import { generated } from './generated.ts'

// Writes the files generated from the code and the migrations. With --check, only reports which are out of date.
const checkout = new URL('..', import.meta.url)
const check = process.argv.includes('--check')

const dataDir = path.join(tmpdir(), `midmonth-generate-${process.pid}`)
const postgres = await startEmbeddedPostgres({ dataDir, checkoutDir: fileURLToPath(checkout) })
const databases = connect(postgres.ownerConnection, { log: pino({ level: 'warn' }) })
try {
  await migrate(databases.db, databases.pool, { name: postgres.connection.user })
  for (const [file, bytes] of Object.entries(await generated(databases))) {
    const current = await readFile(new URL(file, checkout)).catch(() => undefined)
    if (current?.equals(bytes)) continue
    console.log(`${file} ${check ? 'is out of date: run npm run generate' : 'written'}`)
    if (check) process.exitCode = 1
    else await writeFile(new URL(file, checkout), bytes)
  }
} finally {
  await databases.close()
  await postgres.stop()
  await rm(dataDir, { recursive: true, force: true })
}
