import pino from 'pino'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { sql } from '../../src/database/database.ts'
import { auditTasks } from '../../src/verification/tasks.ts'
import { executablePath, expectAccessible } from './chromium.ts'
import { type ConsolePages, phone, startConsole, withdraw } from './console-pages.ts'

vi.setConfig({ testTimeout: 120_000 })

let pages: ConsolePages

describe.skipIf(executablePath === undefined)('the health page of the console', () => {
  beforeAll(async () => {
    pages = await startConsole()
  })
  afterAll(() => pages?.stop())

  test('names the rule that the books violate with its first violation, and collapses passed checks', async () => {
    const { harness, open, close } = pages
    const { memberId } = await withdraw(harness)
    await sql`update ledger_balances set available = available + 1 where member_id = ${memberId}`.execute(
      harness.ownerDb,
    )
    const page = await open('/console/operator/health', { isOperator: true })
    await page.getByRole('button', { name: 'Verify now' }).click()
    await page.getByText('Waiting').waitFor()
    await auditTasks['verify-ledger']({ db: harness.db, log: pino({ level: 'silent' }), now: harness.clock.now })
    const broken = page.getByRole('list', { name: 'Broken rules' })
    await broken.getByText(`${memberId} GBP`).waitFor()
    expect(await broken.getByText('each member’s available and owed balances').count()).toBe(1)
    await page.getByText('Before live mode').waitFor()
    const passed = page.getByText('Every partner has an API key')
    await passed.waitFor({ state: 'attached' })
    expect(await passed.isVisible()).toBe(false)
    await page.getByText('checks passed').click()
    await passed.waitFor()
    await expectAccessible(page)
    await page.setViewportSize(phone.viewport)
    await expectAccessible(page)
    await close(page)
  })
})
