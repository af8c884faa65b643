import { existsSync } from 'node:fs'
import axe from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'
import { expect } from 'vitest'

const known = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** The installed Chromium. If there is none, the browser tests are skipped with a hint on how to install it. */
export const executablePath = known.find(file => existsSync(file))
if (executablePath === undefined)
  console.warn('The browser tests need Chromium: apt-get install -y --no-install-recommends chromium')

// Chromium uses only the last list, so this repeats the relevant part of Playwright's own list.
const unwanted = [
  // Two hidden pages behind the address bar of each new window, which use most of the window's CPU time.
  ...['WebUIOmniboxPopup', 'WebUIOmniboxAimPopup'],
  ...['AvoidUnnecessaryBeforeUnloadCheckSync', 'DestroyProfileOnBrowserClose', 'HttpsUpgrades', 'MediaRouter'],
  ...['HttpsFirstBalancedModeAutoEnable', 'PaintHolding', 'ThirdPartyStoragePartitioning', 'OptimizationHints'],
  ...['NetworkTimeServiceQuerying', 'AimEnabled', 'PreconnectToSearch'],
]

export async function launch(): Promise<Browser> {
  if (executablePath === undefined) throw new Error('Chromium is not installed')
  // As root, Chromium refuses to start with its sandbox. It opens only the pages of these tests.
  return await chromium.launch({ executablePath, args: ['--no-sandbox', `--disable-features=${unwanted.join()}`] })
}

/** Expects axe to find no violations on the page, including its shadow roots. */
export async function expectAccessible(page: Page): Promise<void> {
  // Injected once per document, bypassing the page's content security policy as developer tools do.
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(axe.source)
  const violations = await page.evaluate<string[]>(`axe.run().then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html, failureSummary }) => html + ' ' + failureSummary)))`)
  expect(violations).toEqual([])
}
