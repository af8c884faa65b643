import { Command } from 'commander'
import { readSettings } from '../src/config.ts'
import { openDatabase, prepare, type Roles, run, systemClock } from '../src/main.ts'
import { claimMode, listPartners } from '../src/partners/partners.ts'
import { exampleRequest } from '../src/sandbox/demo.ts'
import { awaitTheEnd, endFailedStart } from './ending.ts'
import { farewell, greeting } from './greeting.ts'
import { examples } from './help.ts'
import { openLog } from './log.ts'
import { sandboxKey } from './sandbox-key.ts'

export const startCommand = new Command('start')
  .description('Start the API and the worker, or one of them. Ctrl-C stops everything that was started.')
  .option('--api', 'only the API')
  .option('--worker', 'only the worker')
  .addHelpText('after', examples('start', 'start --api', 'start --worker'))
  .action(async (only: { api?: true; worker?: true }) => {
    const settings = readSettings(process.env)
    const mode = settings.OPENWAGE_MODE
    const log = openLog(settings.OPENWAGE_LOG_LEVEL, { onReaderGone: () => ending.stop() })
    const ending = awaitTheEnd(log)
    const isWhole = only.api === only.worker
    const roles: Roles = { api: isWhole || only.api === true, worker: isWhole || only.worker === true }

    // Loading takes half a second, which PostgreSQL needs for its own start.
    void import('../src/app.ts')
    const database = await openDatabase(settings, log)
    const { db } = database
    let stop = database.close
    try {
      // Where the roles are apart, the operator migrates first.
      await prepare(database, { mayMigrate: isWhole, log, onProgress: step => log.info(step) })
      await db.transaction().execute(tx => claimMode(tx, { mode, now: systemClock() }))
      const running = await run(database, { settings, roles, log, now: systemClock })
      stop = running.stop
      const drainMs = settings.OPENWAGE_DRAIN_SECONDS * 1_000
      ending.stopWith(running.stop, { drainMs, farewell: farewell(database) })
      // Not before it listens: a key that is made by a start that fails would never be seen.
      const key = isWhole && mode === 'sandbox' ? await sandboxKey(database, log) : undefined
      const example = key === undefined ? undefined : await exampleRequest(db)
      const partnerId = (await listPartners(db)).at(-1)?.id
      log.flush()
      console.log(greeting({ mode, roles, address: running.address, database, key, example, partnerId }))
    } catch (error) {
      // The sentence is printed first: closing what is half open may take a while, and must not hide why.
      endFailedStart()
      void stop().catch(failure => log.error({ err: failure }, 'stopping failed'))
      throw error
    }
  })
