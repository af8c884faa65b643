import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { list } from '../../src/audit-log/audit-log.ts'
import { executablePath, expectAccessible } from './chromium.ts'
import { type ConsolePages, expectToFit, phone, startConsole, withdraw } from './console-pages.ts'

vi.setConfig({ testTimeout: 120_000 })

let pages: ConsolePages

const secretOn = async (page: Page) => (await page.getByText(/^mm_test_\w{20,}$/).textContent()) ?? ''
const statusWith = async (key: string, path = '/v1/members') => (await pages.harness.call('GET', path, { key })).status

describe.skipIf(executablePath === undefined)('the developer’s console', () => {
  beforeAll(async () => {
    pages = await startConsole()
  })
  afterAll(() => pages?.stop())

  test('API keys are created with scopes and an expiry, shown once, rotated with an overlap, and revoked unless undone', async () => {
    const { harness, open, close } = pages
    const page = await open('keys', { roles: ['developer'] })
    await page.getByRole('button', { name: 'New key' }).click()
    await expectAccessible(page)
    const scopes = ['members:read', 'members:write', 'pay:read', 'pay:write']
    for (const scope of scopes) await page.getByRole('checkbox', { name: scope }).uncheck()
    await page.getByRole('button', { name: 'Create the key' }).click()
    await page.getByText('Choose at least one').waitFor()
    await page.getByRole('checkbox', { name: 'members:read' }).check()
    await page.getByLabel('Valid for').selectOption('30 days')
    await page.getByRole('button', { name: 'Create the key' }).click()
    const first = await secretOn(page)
    await expectAccessible(page)
    expect([await statusWith(first), await statusWith(first, '/v1/pay/withdrawals')]).toEqual([200, 403])
    await page.getByRole('button', { name: 'Stored' }).click()
    const row = page.getByRole('row').filter({ hasText: first.slice(0, 12) })
    await row.getByText('members:read').waitFor()
    expect(await page.content()).not.toContain(first)

    await row.getByRole('button', { name: 'Rotate' }).click()
    await expectAccessible(page)
    await page.getByLabel('The old key works for').selectOption('an hour')
    await page.getByRole('button', { name: 'Create the second key' }).click()
    const second = await secretOn(page)
    await page.keyboard.press('Escape')
    expect([await statusWith(first), await statusWith(second)]).toEqual([200, 200])
    harness.clock.advance({ minutes: 60, seconds: 2 })
    expect([await statusWith(first), await statusWith(second)]).toEqual([401, 200])

    await close(page)

    // The first reader’s session has expired by now.
    const later = await open('keys', { roles: ['admin'] })
    const replaced = later.getByRole('row').filter({ hasText: second.slice(0, 12) })
    await replaced.getByRole('button', { name: 'Revoke' }).click()
    await later.getByRole('button', { name: 'Undo' }).click()
    await replaced.getByText('Valid').waitFor()
    await replaced.getByRole('button', { name: 'Revoke' }).click()
    await replaced.getByText('Revoked').waitFor()
    harness.clock.advance({ seconds: 2 })
    expect(await statusWith(second)).toBe(401)
    const entries = await list(harness.db, { filter: { partnerId: harness.partner.id }, take: 10 })
    const changes = entries.filter(({ action }) => action.startsWith('key.'))
    expect(changes.slice(0, 3).map(({ action, actorKind }) => [action, actorKind])).toEqual([
      ['key.revoke', 'user'],
      ['key.create', 'user'],
      ['key.create', 'user'],
    ])
    await close(later)
  })

  test('admins, developers and operators can open the API keys of their partner, and other partners’ keys are not found', async () => {
    const { harness, open, close, origin } = pages
    for (const reader of [{ roles: ['admin'] }, { isOperator: true }] as const) {
      const page = await open('keys', reader, phone)
      await page.getByRole('button', { name: 'New key' }).waitFor()
      await expectToFit(page)
      await close(page)
    }
    for (const role of ['payroll', 'support', 'viewer'] as const) {
      const page = await open('keys', { roles: [role] })
      await page.getByRole('heading', { name: 'Not allowed' }).waitFor()
      expect(await page.getByRole('link', { name: 'API keys' }).count()).toBe(0)
      await page.goto(`${origin}/console/${harness.other.partner.id}/keys`)
      await page.getByRole('heading', { name: 'Not found' }).waitFor()
      await close(page)
    }
  })

  test('errors by code are plotted by hour and day, and choosing a code filters the requests', async () => {
    const { harness, open, close } = pages
    for (const path of ['/v1/members/mem_123', '/v1/members/mem_456', '/v1/members?take=none'])
      await harness.call('GET', path)
    await harness.flushRequestLog()
    for (const options of [{ colorScheme: 'dark' }, phone] as const) {
      const page = await open('requests', { roles: ['developer'] }, options)
      await page.locator('.plot canvas').waitFor()
      const figures = page.getByRole('table', { name: 'Errors by code and day' })
      await figures.getByText(/NotFound \d/).waitFor({ state: 'attached' })
      await expectAccessible(page)
      await expectToFit(page)
      await page.getByRole('button', { name: 'Hour' }).click()
      await page
        .getByRole('table', { name: 'Errors by code and hour' })
        .getByText(/NotFound \d/)
        .waitFor({ state: 'attached' })
      const rows = page.getByRole('table', { name: 'Requests' }).locator('tbody tr')
      // On a phone, the column with the code is hidden.
      const ofOtherCode = rows.filter({ hasText: 'QueryValidation' })
      await ofOtherCode.waitFor()
      await page.getByRole('button', { name: 'MemberNotFound' }).click()
      await ofOtherCode.waitFor({ state: 'detached' })
      expect(await rows.filter({ hasText: 'MemberNotFound' }).count()).toBe(2)
      await expect.poll(() => page.url()).toContain('code=MemberNotFound')
      await close(page)
    }
  })

  test('the sandbox drawer opens on any page, moves the clock, and starts over only after the time to undo', async () => {
    const { harness, open, close } = pages
    const { memberId } = await withdraw(harness)
    const page = await open(`members/${memberId}`, { roles: ['developer'] })
    await page.getByRole('heading', { name: 'Sam Okafor' }).waitFor()
    await page.getByRole('button', { name: /^Sandbox/ }).click()
    await expectAccessible(page)
    await page.getByRole('button', { name: '1 hour' }).click()
    await page.getByText(/^Clock moved; \d+ events? came due$/).waitFor()
    await page.getByText('60 minutes').waitFor()
    const statusOf = async () => (await harness.call('GET', `/v1/members/${memberId}`)).status
    await page.getByRole('button', { name: /^A fresh start/ }).click()
    await page.getByRole('button', { name: 'Undo' }).click()
    expect(await statusOf()).toBe(200)
    await page.getByRole('button', { name: /^Sandbox/ }).click()
    await page.getByRole('button', { name: /^A fresh start/ }).click()
    await page.getByRole('heading', { name: 'Not found' }).waitFor()
    expect(await statusOf()).toBe(404)
    await close(page)
  })

  test('thrown errors and rejected promises are reported once each, and a storm of 10,000 at most ten times', async () => {
    const { open } = pages
    const page = await open('', { roles: ['viewer'] })
    await page.getByText('Latest withdrawals').waitFor()
    const reports: { message: string; page: string }[] = []
    page.on('request', request => {
      if (request.url().endsWith('/console/v1/errors')) reports.push(request.postDataJSON())
    })
    const later = (text: string) => page.evaluate(`setTimeout(() => { ${text} })`)
    const answered = page.waitForResponse(response => response.url().endsWith('/console/v1/errors'))
    await later("throw new TypeError('a thrown error')")
    expect((await answered).status()).toBe(200)
    await later("Promise.reject(new Error('a rejected promise'))")
    await expect.poll(() => reports.length).toBe(2)
    expect(reports).toMatchObject([{ message: 'a thrown error' }, { message: 'a rejected promise' }])
    expect(reports[0]?.page).toBe(new URL(page.url()).pathname)
    await later("throw new TypeError('a thrown error')")
    await later("for (let n = 0; n < 10_000; n++) setTimeout(() => { throw new Error('storm ' + n) })")
    await expect.poll(() => reports.length).toBe(10)
    await later("document.title = 'The storm is over'")
    await expect.poll(() => page.title()).toBe('The storm is over')
    expect(reports.length).toBe(10)
    await page.getByRole('link', { name: 'Members', exact: true }).click()
    await page.getByRole('heading', { name: 'Members', level: 1 }).waitFor()
    await page.context().close()
  })

  test('a first visit needs few requests, asks for the session once, and paints before the script has run', async () => {
    const { harness, browser, open, origin } = pages
    const { id } = await withdraw(harness)
    const page = await open('withdrawals', { roles: ['viewer'] })
    // The requests of this visit are not counted.
    await page.getByRole('row').nth(1).waitFor()
    const asked: string[] = []
    page.on('request', request => asked.push(new URL(request.url()).pathname))
    await page.reload()
    await page.getByRole('row').nth(1).waitFor()
    expect(asked.filter(path => path === '/console/v1/session')).toHaveLength(1)
    expect(asked.filter(path => path === '/v1/pay/withdrawals')).toHaveLength(1)
    expect(asked.filter(path => path.endsWith('.js'))).toHaveLength(1)
    expect(asked.length).toBeLessThanOrEqual(9)
    // Hovering over a row prefetches its record, and the click does not repeat the request.
    const row = page.getByRole('row').nth(1)
    const [request] = await Promise.all([page.waitForRequest(`${origin}/v1/pay/withdrawals/${id}`), row.hover()])
    await request.response()
    await row.getByRole('cell').first().click()
    await page.getByRole('heading', { name: 'Timeline' }).waitFor()
    expect(asked.filter(path => path === `/v1/pay/withdrawals/${id}`)).toHaveLength(1)
    await page.context().close()

    const context = await browser.newContext()
    const withoutScript = await context.newPage()
    await withoutScript.route('**/*.js', route => route.abort())
    await withoutScript.goto(`${origin}/console/${harness.partner.id}/withdrawals`)
    await withoutScript.getByText('Midmonth', { exact: true }).waitFor()
    await withoutScript.getByRole('status', { name: 'Loading' }).waitFor()
    await expectAccessible(withoutScript)
    await context.close()
  })

  test('a developer can work without the mouse: pages, rows, records of every kind, filters, help and back', async () => {
    const { harness, open, close, origin } = pages
    const { id, memberId } = await withdraw(harness, { amount: 6_543, idempotencyKey: 'shift-2026-03-10' })
    await harness.flushRequestLog()
    const page = await open('', { roles: ['developer'] })
    const press = async (...keys: string[]) => {
      for (const key of keys) await page.keyboard.press(key)
    }
    const find = async (text: string) => {
      await press('Control+k')
      await page.getByRole('combobox').waitFor()
      await page.keyboard.type(text)
    }
    await page.getByText('Latest withdrawals').waitFor()
    await press('g', 'w')
    await page.getByRole('row', { name: '£64.93' }).waitFor()
    await press('j')
    await expect.poll(() => page.evaluate<string>('document.activeElement.textContent')).toContain('£64.93')
    await press('Enter')
    await page.getByRole('heading', { name: 'Timeline' }).waitFor()
    await expect.poll(() => page.url()).toContain(id)
    await press('u')
    await page.getByRole('row', { name: '£64.93' }).waitFor()

    await press('g', 'r')
    await page.getByRole('heading', { name: 'Requests' }).waitFor()
    await press('/')
    await page.keyboard.type('shift-2026-03-10')
    await press('Enter')
    await expect.poll(() => page.getByRole('table', { name: 'Requests' }).locator('tbody tr').count()).toBe(1)
    await press('ArrowDown', 'Enter')
    await page.getByText("-H 'x-idempotency-key: shift-2026-03-10'").waitFor()

    await find('okaf')
    await page.getByRole('option', { name: 'Sam Okafor' }).first().waitFor()
    await press('Enter')
    await page.getByRole('heading', { name: 'Sam Okafor' }).waitFor()

    await find('shift-2026-03-10')
    await page.getByRole('option', { name: 'Idempotency key' }).waitFor()
    await press('Enter')
    await page.getByRole('heading', { name: 'Idempotency key' }).waitFor()

    const { events } = (await harness.call('GET', `/v1/events?resourceId=${id}`)).body
    const { payRuns } = (await harness.call('GET', '/v1/pay/runs?take=1')).body
    const { body: webhook } = await harness.call('POST', '/v1/webhooks', { body: { url: 'https://example.com/all' } })
    const { requests } = (await harness.call('GET', '/v1/requests?take=1')).body
    const { withdrawalIntentId } = (await harness.call('GET', `/v1/pay/withdrawals/${id}`)).body
    const kinds: [string, string][] = [
      [id, `withdrawals/${id}`],
      [withdrawalIntentId, `intents/${withdrawalIntentId}`],
      [memberId, `members/${memberId}`],
      [payRuns[0].id, `pay-runs/${payRuns[0].id}`],
      [harness.payCycle.id, `cycles/${harness.payCycle.id}`],
      [webhook.id, `webhooks/${webhook.id}`],
      [requests[0].id, `requests/${requests[0].id}`],
      [requests[0].keyId, `keys?id=${requests[0].keyId}`],
      [events[0].id, `events?after=${events[0].id}`],
    ]
    for (const [record, address] of kinds) {
      await find(record)
      await page.getByRole('option', { name: record, exact: false }).first().waitFor()
      await press('Enter')
      await expect.poll(() => page.url()).toBe(`${origin}/console/${harness.partner.id}/${address}`)
    }

    await find(`${id}`)
    await page.getByRole('option', { name: 'Its events' }).waitFor()
    await press('ArrowDown', 'Enter')
    await page.getByRole('cell', { name: 'withdrawal.held' }).waitFor()
    await press('?')
    await page.getByRole('dialog', { name: 'Help' }).getByText('API keys').waitFor()
    await press('Escape', 'g', 'k')
    await page.getByRole('heading', { name: 'API keys' }).waitFor()
    await page.getByRole('dialog', { name: 'Help' }).waitFor({ state: 'hidden' })
    await press('Tab')
    expect(await page.evaluate<boolean>("document.activeElement.closest('main') !== null")).toBe(true)
    await close(page)
  })
})
