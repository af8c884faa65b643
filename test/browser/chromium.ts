import { existsSync } from 'node:fs'
import axe from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'
import { expect } from 'vitest'

const known = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** Undefined if this machine has no Chromium; then the browser tests say how to get one. */
export const executablePath = known.find(file => existsSync(file))
if (executablePath === undefined)
  console.warn('The browser tests need Chromium: apt-get install -y --no-install-recommends chromium')

// Chromium takes the last list only, so Playwright's own is repeated, as far as it concerns pages on this machine.
const unwanted = [
  // Two pages behind the address bar of each new window, which nothing shows: most of the CPU time that a window takes.
  ...['WebUIOmniboxPopup', 'WebUIOmniboxAimPopup'],
  ...['AvoidUnnecessaryBeforeUnloadCheckSync', 'DestroyProfileOnBrowserClose', 'HttpsUpgrades', 'MediaRouter'],
  ...['HttpsFirstBalancedModeAutoEnable', 'PaintHolding', 'ThirdPartyStoragePartitioning', 'OptimizationHints'],
  ...['NetworkTimeServiceQuerying', 'AimEnabled', 'PreconnectToSearch'],
]

export async function launch(): Promise<Browser> {
  if (executablePath === undefined) throw new Error('There is no Chromium')
  // As root Chromium refuses to start with its sandbox. It opens pages of these tests only.
  return await chromium.launch({ executablePath, args: ['--no-sandbox', `--disable-features=${unwanted.join()}`] })
}

/** Checks that axe finds nothing to improve on the page, shadow roots included. */
export async function expectAccessible(page: Page): Promise<void> {
  // As the developer tools do, past the content security policy of the page; once for each document.
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(axe.source)
  const violations = await page.evaluate<string[]>(`axe.run().then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html, failureSummary }) => html + ' ' + failureSummary)))`)
  expect(violations).toEqual([])
}
