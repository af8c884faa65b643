import { pipeline } from 'node:stream/promises'
import { Command } from 'commander'
import { systemClock } from '../src/clock.ts'
import { recordChange } from './actor.ts'
import { examples } from './help.ts'
import { terminal } from './terminal.ts'
import { withDatabase } from './with-database.ts'

// Not through the API: the archive is in a folder of the worker's machine.
export const openArchivedCommand = new Command('open-archived')
  .description('Print a bank file from the archive of a rail, which is sealed. Each use is in the audit log.')
  .argument('<file>', 'the file, archive/…/NAME.sealed or rejected/NAME.sealed in the rail’s folder')
  .addHelpText('after', examples('payouts open-archived /srv/sepa/archive/2026-03-10/camt053.xml.sealed > camt053.xml'))
  .action(async (file: string) => {
    // Loaded here: `--help` must not wait for them.
    const [{ findArchiveKey }, { openSealedFile }] = await Promise.all([
      import('../src/payouts/books/archive-keys.ts'),
      import('../src/payouts/delivery/sealed-file.ts'),
    ])
    await withDatabase(async db => {
      const opened = openSealedFile(file, async of => {
        const key = await findArchiveKey(db, of)
        const change = { action: 'bank_file.read', resourceId: of.rail, details: { day: of.day } } as const
        if (key !== undefined)
          await db.transaction().execute(tx => recordChange(tx, { partnerId: null, change, now: systemClock() }))
        return key
      })
      await pipeline(opened, terminal().stdout, { end: false })
    })
  })
