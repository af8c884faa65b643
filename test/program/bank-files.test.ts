import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { sql } from '../../src/database/database.ts'
import { type Harness, startHarness } from '../harness/harness.ts'
import { type Environment, launch, midmonth } from './program.ts'

vi.setConfig({ testTimeout: 120_000 })

const iban = 'DE75512108001245126199'
const sepa = {
  ...{ name: 'sepa', type: 'sepa-file', currency: 'EUR', cutOff: '15:00', timeZone: 'Europe/Berlin' },
  debtors: { default: { name: 'Acme GmbH', iban } },
}
const entries = 12_000

let folder: string
let harnesses: Harness[]
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'midmonth-bank-files-'))
  harnesses = []
  writeFileSync(path.join(folder, 'rails.json'), JSON.stringify({ rails: [sepa] }))
  writeFileSync(path.join(folder, 'camt053.xml'), statement())
})
afterEach(async () => {
  rmSync(folder, { recursive: true })
  for (const harness of harnesses) await harness.stop()
})

/** A statement with unrelated entries; some are reported twice, and some have no bank reference. */
function statement(): string {
  const entry = (number: number) => {
    const bank = number % 7 === 0 ? '' : `<AcctSvcrRef>B${number}</AcctSvcrRef>`
    return (
      `<Ntry><Amt Ccy="EUR">${1 + (number % 500)}.07</Amt><CdtDbtInd>${number % 3 === 0 ? 'DBIT' : 'CRDT'}</CdtDbtInd><Sts>BOOK</Sts>` +
      `<BookgDt><Dt>2026-03-10</Dt></BookgDt>${bank}<NtryDtls><TxDtls><Refs><EndToEndId>INVOICE-${number % 5_000}</EndToEndId></Refs>` +
      '</TxDtls></NtryDtls></Ntry>'
    )
  }
  const all = Array.from({ length: entries }, (_, number) => entry(number))
  return (
    '<Document><BkToCstmrStmt><GrpHdr><MsgId>M1</MsgId><CreDtTm>2026-03-10T18:00:00Z</CreDtTm></GrpHdr>' +
    `<Stmt><Id>1</Id><Acct><Id><IBAN>${iban}</IBAN></Id></Acct>${all.join('\n')}</Stmt></BkToCstmrStmt></Document>`
  )
}

async function installation(): Promise<{ harness: Harness; settings: Environment }> {
  const harness = await startHarness({ bankOf: () => 'connected' })
  harnesses.push(harness)
  return { harness, settings: { ...harness.settings, MIDMONTH_RAILS: path.join(folder, 'rails.json') } }
}

const importing = () => ['payouts', 'import', 'sepa', path.join(folder, 'camt053.xml'), '--as', 'Ada']

/** The rows that an import leaves, without ids and instants. */
async function stateOf({ db }: Harness) {
  const { rows: records } = await sql`
    select message_id, entry_key, line, reference, outcome, account, booked_on, amount, bank_reference, movement_id from bank_records
     order by entry_key`.execute(db)
  const { rows: exceptions } = await sql`
    select kind, fingerprint, line, reference, amount, reason, closed_at from payout_exceptions order by fingerprint`.execute(
    db,
  )
  const { rows: files } = await sql`
    select name, status, record_count, applied_count, message_id,
           (select count(*) from staged_bank_records) as staged,
           (select count(*) from installation_audit_log where action = 'bank_file.import') as audited from bank_files`.execute(
    db,
  )
  return { records, exceptions, files }
}

test('an import that is killed twice and repeated leaves the same rows as an undisturbed one', async () => {
  const undisturbed = await installation()
  expect(await midmonth(importing(), undisturbed.settings)).toMatchObject({ code: 0 })

  const { harness, settings } = await installation()
  const applied = async () => {
    const { rows } = await sql<{ applied: number }>`
      select applied_count as applied from bank_files`.execute(harness.db)
    return rows[0]?.applied ?? 0
  }
  let before = 0
  for (let kill = 0; kill < 2; kill++) {
    const child = launch(importing(), settings)
    const ended = new Promise(resolve => child.once('exit', resolve))
    await vi.waitUntil(async () => (await applied()) > before, { timeout: 60_000, interval: 2 })
    child.kill('SIGKILL')
    await ended
    before = await applied()
  }
  expect(before).toBeLessThan(entries)
  const listed = await midmonth(['payouts', 'list'], settings)
  expect(listed.stdout).toMatch(/^\d+ of 12000 records of the bank file camt053.xml are imported on sepa\.$/m)
  expect((await midmonth(['status'], settings)).stdout).toMatch(/! \d+ of 12000 records of the bank file camt053\.xml/)

  // PostgreSQL frees the lock once it notices that the process is gone.
  expect(await midmonth(importing(), settings)).toMatchObject({ code: 0, stdout: `${entries} records imported.\n` })
  expect(await stateOf(harness)).toEqual(await stateOf(undisturbed.harness))
  const repeated = await midmonth(importing(), settings)
  expect(repeated.stdout).toBe('The file was imported before; nothing changed.\n')
})
