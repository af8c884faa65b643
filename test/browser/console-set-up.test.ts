import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { liveSettings, midmonth, newDatabase, type Service, start, tidyUp } from '../program/program.ts'
import { executablePath, expectAccessible, launch } from './chromium.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const password = 'correct horse battery'
let browser: Browser

/** A browser without any state. */
async function newBrowser(): Promise<Page> {
  return await (await browser.newContext()).newPage()
}

async function choosePassword(page: Page, name: string, submit: string): Promise<void> {
  await page.getByLabel('Your name').fill(name)
  await page.getByLabel('Choose a password').fill(password)
  await page.getByRole('button', { name: submit }).click()
  await page.getByRole('heading', { name: 'Partners', exact: true }).waitFor()
}

describe.skipIf(executablePath === undefined)('an empty live installation', () => {
  beforeAll(async () => {
    browser = await launch()
  })
  afterAll(async () => {
    await browser?.close()
    await tidyUp()
  })

  test('is set up with the link in the log: the first operator signs in and invites the second', async () => {
    const live = await start({ ...(await newDatabase()), ...(await liveSettings()) })
    const inLog = /http:\S+\/console\/set-up#mml_\w+/
    await expect.poll(live.log).toMatch(inLog)
    const [link = ''] = inLog.exec(live.log()) ?? []

    const stranger = await newBrowser()
    await stranger.goto(`${live.address}/console`)
    await stranger.getByRole('heading', { name: 'Set up Midmonth' }).waitFor()
    await stranger.getByText('midmonth operator create').waitFor()
    await expectAccessible(stranger)

    const first = await newBrowser()
    await first.goto(link)
    await first.getByRole('heading', { name: 'Set up the console' }).waitFor()
    await expect.poll(() => first.url()).not.toContain('mml_')
    await expectAccessible(first)
    await first.getByLabel('E-mail address').fill('ada@example.com')
    await choosePassword(first, 'Ada Lovelace', 'Become the operator')

    await first.getByRole('link', { name: 'Operators' }).click()
    await first.getByText('Approving a payout batch takes two operators.').waitFor()
    await first.getByRole('button', { name: 'Invite an operator' }).click()
    await first.getByLabel('E-mail address').fill('bob@example.com')
    await first.getByRole('button', { name: 'Create the link' }).click()
    const invitation = await first.getByText('/console/invitation#').textContent()
    await first.getByRole('button', { name: 'Close', exact: true }).click()
    await first.getByRole('table', { name: 'Open invitations' }).waitFor()
    await expectAccessible(first)

    const second = await newBrowser()
    await second.goto(invitation ?? '')
    await choosePassword(second, 'Bob Stone', 'Accept')
    await second.getByRole('link', { name: 'Operators' }).click()
    await second.getByRole('cell', { name: 'Ada Lovelace', exact: true }).waitFor()
    expect(await second.getByText('takes two operators').count()).toBe(0)

    await stranger.reload()
    await stranger.getByRole('heading', { name: 'Sign in to Midmonth' }).waitFor()
    await live.stop()
  })

  test.each([
    ['with --invite', ['--invite']],
    ['without a terminal', []],
  ])('is set up with the link of operator create %s', async (_, options) => {
    const settings = { ...(await newDatabase()), ...(await liveSettings()) }
    const live: Service = await start(settings)
    const made = await midmonth(['operator', 'create', 'ada@example.com', ...options], settings)
    const page = await newBrowser()
    await page.goto(/http:\S+/.exec(made.stdout)?.[0] ?? '')
    await choosePassword(page, 'Ada Lovelace', 'Accept')
    await live.stop()
  })
})
