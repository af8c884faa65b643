import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { executablePath } from './chromium.ts'
import { type ConsolePages, startConsole } from './console-pages.ts'

vi.setConfig({ testTimeout: 120_000 })

let pages: ConsolePages
let evil: Server
let evilOrigin: string
let evilHtml = ''

/** Opens a page of another local server in the browser of a user who is signed in to the console. */
async function lure(html: string) {
  evilHtml = html
  const own = await pages.open('', { isOperator: true })
  await own.getByRole('heading', { name: 'Overview' }).waitFor()
  const page = await own.context().newPage()
  await page.goto(evilOrigin)
  await page.waitForLoadState('networkidle')
  const expectSignedIn = async () => {
    await own.reload()
    await own.getByRole('heading', { name: 'Overview' }).waitFor()
  }
  return { page, own, expectSignedIn }
}

describe.skipIf(executablePath === undefined)('a page of another server, in the browser of a user', () => {
  beforeAll(async () => {
    pages = await startConsole({ hasDocs: true })
    evil = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(evilHtml)
    })
    await new Promise<void>(resolve => evil.listen(0, '127.0.0.1', resolve))
    // Same site as the console, so the browser sends the console's cookie.
    evilOrigin = `http://127.0.0.1:${(evil.address() as AddressInfo).port}/`
  })
  afterAll(async () => {
    await new Promise<void>(resolve => evil?.close(() => resolve()))
    await pages?.stop()
  })

  test('cannot show the console, the member page or the reference in a frame', async () => {
    const framed = ['/console', '/console/sign-in', `/console/${pages.harness.partner.id}/members`, '/m', '/docs']
    for (const path of framed) expect((await fetch(pages.origin + path)).status, path).toBe(200)
    const frames = framed.map(path => `<iframe src="${pages.origin}${path}"></iframe>`)
    const objects = [`<object data="${pages.origin}/console" width="300" height="200"></object>`]
    // Its own page can be framed, which proves that the test detects frames.
    const { page, own } = await lure([...frames, ...objects, '<iframe src="data:text/html,shown"></iframe>'].join('\n'))
    const shown = () => page.frames().map(frame => frame.url())
    await expect
      .poll(() => shown().filter(url => url.startsWith('chrome-error:')).length)
      .toBeGreaterThanOrEqual(framed.length)
    await expect.poll(shown).toContain('data:text/html,shown')
    expect(shown().filter(url => url.startsWith(pages.origin))).toEqual([])
    await own.context().close()
  })

  test('cannot act with the user’s session, by a form or by a script', async () => {
    const target = `${pages.origin}/console/v1/sign-out`
    const form = (type: string) =>
      `<form method="post" action="${target}" enctype="${type}" target="sink"><input name='{"a":"' value='"}'></form>`
    const { page, own, expectSignedIn } = await lure(
      `<iframe name="sink"></iframe>${['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data'].map(form).join('')}`,
    )
    const statuses: number[] = []
    page.on('response', response => {
      if (response.url() === target && response.request().method() === 'POST') statuses.push(response.status())
    })
    for (const index of [0, 1, 2]) {
      const answered = page.waitForResponse(response => response.url() === target)
      await page.evaluate(`document.forms[${index}].submit()`)
      await answered
    }
    const given = "{ method: 'POST', mode: 'no-cors', credentials: 'include', body: '{}' }"
    await page.evaluate(`fetch('${target}', ${given}).catch(() => undefined)`)
    await page.evaluate(`navigator.sendBeacon('${target}', '{}')`)
    await vi.waitFor(() => expect(statuses).toEqual([403, 403, 403, 403, 403]), { timeout: 10_000 })
    // Nor can the page read a response.
    const read = `fetch('${pages.origin}/console/v1/session', { credentials: 'include' }).then(() => 'read', () => 'refused')`
    expect(await page.evaluate(read)).toBe('refused')
    await expectSignedIn()
    await own.context().close()
  })
})
