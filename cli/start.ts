import { Command } from 'commander'
import { systemClock } from '../src/clock.ts'
import { readSettings, SettingsProblem } from '../src/config.ts'
import { type Roles, run } from '../src/main.ts'
import { openDatabase, prepare } from '../src/open-database.ts'
import { claimMode, listPartners } from '../src/partners/partners.ts'
import { exampleRequest } from '../src/sandbox/demo.ts'
import { describeKey } from '../src/sealing/key-providers.ts'
import { openTracing } from '../src/tracing/tracing.ts'
import { createDemoLink } from '../src/users/demo-operator.ts'
import { banner, farewell } from './banner.ts'
import { offerSetUp } from './console-set-up.ts'
import { examples } from './help.ts'
import { openLog } from './log.ts'
import { sandboxKey } from './sandbox-key.ts'
import { exitAfterFailedStart, handleShutdown } from './shutdown.ts'
import { terminal, writeLine } from './terminal.ts'

export const startCommand = new Command('start')
  .description('Start the API and the worker, or only one of them. Ctrl-C stops both.')
  .option('--api', 'start only the API')
  .option('--worker', 'start only the worker')
  .addHelpText('after', examples('start', 'start --api', 'start --worker'))
  .action(async (only: { api?: true; worker?: true }) => {
    const settings = readSettings(terminal().env)
    const mode = settings.MIDMONTH_MODE
    if (mode === 'live' && settings.MIDMONTH_PUBLIC_URL === '')
      throw new SettingsProblem(
        'MIDMONTH_PUBLIC_URL must be set in live mode, to the address at which people and partners reach the service, like https://pay.example.com',
      )
    const opened = await openTracing(settings)
    // Without an SDK, all ids would be zeros.
    const tracing = opened?.hasReceiver ? opened : undefined
    const log = openLog(settings.MIDMONTH_LOG_LEVEL, { onReaderGone: () => shutdown.stop(), tracing })
    if (tracing !== opened)
      log.warn('Nothing is traced: no OpenTelemetry SDK takes the spans; see docs/operations/tracing.md')
    const shutdown = handleShutdown(log)
    const isWhole = only.api === only.worker
    const roles: Roles = { api: isWhole || only.api === true, worker: isWhole || only.worker === true }

    // Loading takes half a second; it overlaps with the start of PostgreSQL.
    void import('../src/app.ts')
    let stop: () => Promise<void> = async () => undefined
    try {
      const database = await openDatabase(settings, log, { isServing: true })
      const { db } = database
      stop = database.close
      // When the API and the worker are separate processes, the operator migrates first.
      const sealer = await prepare(database, { mayMigrate: isWhole, log, onProgress: step => log.info(step) })
      await db.transaction().execute(tx => claimMode(tx, { mode, now: systemClock() }))
      const running = await run(database, { settings, roles, sealer, log, now: systemClock, tracing })
      stop = running.stop
      const drainMs = settings.MIDMONTH_DRAIN_SECONDS * 1_000
      shutdown.stopWith(running.stop, { drainMs, farewell: farewell(database) })
      // Only once it listens: a start that fails would create a key and never print it.
      const key = isWhole && mode === 'sandbox' ? await sandboxKey(database, { settings, log }) : undefined
      const example = key === undefined ? undefined : await exampleRequest(db)
      const consoleToken = isWhole && mode === 'sandbox' ? await createDemoLink(db, systemClock()) : undefined
      const partnerId = (await listPartners(db)).at(-1)?.id
      if (roles.api && mode === 'live') await offerSetUp(database, { settings, address: running.address, log })
      log.flush()
      const installationKey = await describeKey(database.keySource)
      writeLine(
        banner({
          mode,
          roles,
          address: running.address,
          database,
          installationKey,
          key,
          consoleToken,
          example,
          partnerId,
        }),
      )
    } catch (error) {
      // Doesn't wait for `stop`: the error must be printed even if closing hangs.
      exitAfterFailedStart()
      void stop().catch(failure => log.error({ err: failure }, 'shutdown failed'))
      throw error
    }
  })
