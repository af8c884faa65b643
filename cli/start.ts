import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { Command } from 'commander'
import pino from 'pino'
import { readSettings } from '../src/config.ts'
import { type Database, openDatabase, prepare, type Roles, run, systemClock } from '../src/main.ts'
import { exampleRequest, seedDemo } from '../src/sandbox/demo.ts'

export const startCommand = new Command('start')
  .description('Start the API and the worker, or one of them. Ctrl-C stops everything that was started.')
  .option('--api', 'only the API')
  .option('--worker', 'only the worker')
  .action(async (options: { api?: boolean; worker?: boolean }) => {
    const settings = readSettings(process.env)
    const log = pino({ level: settings.OPENWAGE_LOG_LEVEL }, pino.destination({ dest: 2, sync: true }))
    const all = options.api === options.worker
    const roles: Roles = { api: all || options.api === true, worker: all || options.worker === true }
    const database = await openDatabase(settings, log)
    try {
      await prepare(database, { settings, roles, now: systemClock })
      const sandboxKey = settings.OPENWAGE_MODE === 'sandbox' && all ? await sandboxKeyOf(database) : undefined
      const running = await run(database, { settings, roles, log, now: systemClock })
      stopOnSignal(running.stop, log)
      await greet({ address: running.address, database, sandboxKey, mode: settings.OPENWAGE_MODE, roles })
    } catch (error) {
      await database.close()
      throw error
    }
  })

// The key itself is stored nowhere in the database. A sandbox on the embedded PostgreSQL keeps it beside the data, so
// that every start can print the same request.
async function sandboxKeyOf({ db, dataDir }: Database): Promise<string | undefined> {
  const seeded = await seedDemo(db, systemClock())
  const file = dataDir === undefined ? undefined : path.join(dataDir, 'sandbox-api-key')
  if (seeded === undefined)
    return file === undefined
      ? undefined
      : await readFile(file, 'utf8').then(
          text => text.trim(),
          () => undefined,
        )
  if (file !== undefined) await writeFile(file, `${seeded.secret}\n`, { mode: 0o600 })
  return seeded.secret
}

async function greet({
  address,
  database,
  sandboxKey,
  mode,
  roles,
}: {
  address: string | undefined
  database: Database
  sandboxKey: string | undefined
  mode: string
  roles: Roles
}): Promise<void> {
  const lines = [
    `Openwage is running (${mode}${roles.api && roles.worker ? '' : roles.api ? ', API only' : ', worker only'}).`,
    '',
    ...(address === undefined ? [] : [`  API       ${address}`, `  Docs      ${address}/docs`]),
    ...(sandboxKey === undefined ? [] : [`  Test key  ${sandboxKey}`]),
    ...(database.dataDir === undefined ? [] : [`  Data      ${database.dataDir}`]),
    ...(database.psqlHint === undefined ? [] : [`  Look in   ${database.psqlHint}`]),
  ]
  const example = sandboxKey === undefined || address === undefined ? undefined : await exampleRequest(database.db)
  if (example !== undefined && sandboxKey !== undefined) {
    lines.push(
      '',
      'A first request, to paste into another terminal:',
      '',
      `  curl -s ${address}/v1/pay/withdrawals/intent \\`,
      `    -H 'x-api-key: ${sandboxKey}' \\`,
      `    -H 'content-type: application/json' \\`,
      `    -d '${JSON.stringify(example)}'`,
    )
  }
  lines.push('', 'Ctrl-C stops it.')
  console.log(lines.join('\n'))
}

function stopOnSignal(stop: () => Promise<void>, log: pino.Logger): void {
  let stopping = false
  const onSignal = (signal: string) => {
    // A second Ctrl-C means: now. The embedded PostgreSQL stops by itself when we are gone.
    if (stopping) process.exit(130)
    stopping = true
    log.info({ signal }, 'stopping')
    stop().then(
      () => process.exit(0),
      error => {
        log.error({ err: error }, 'stopping failed')
        process.exit(1)
      },
    )
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  process.on('SIGHUP', onSignal)
}
