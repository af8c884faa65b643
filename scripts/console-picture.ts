import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'

// Takes the README's picture of the console of a running sandbox: npm start, then, with the link that it printed,
// npm exec -- node scripts/console-picture.ts 'http://127.0.0.1:8080/console/sign-in#…'
const target = new URL('../docs/console.png', import.meta.url)
const bytesMax = 300_000
const { positionals } = parseArgs({ allowPositionals: true })
const [link] = positionals
if (link === undefined) throw new Error('Give the link to the console that npm start printed')

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
try {
  const page = await browser.newPage({
    ...{ viewport: { width: 1280, height: 760 }, deviceScaleFactor: 1.5 },
    ...{ locale: 'en-GB', timezoneId: 'Europe/London', colorScheme: 'light' },
  })
  await page.goto(link)
  await page.locator('.plot canvas').waitFor()
  await page.getByRole('row').nth(3).waitFor()
  const picture = await page.screenshot({ animations: 'disabled' })
  if (picture.length > bytesMax) throw new Error(`The picture has ${picture.length} bytes, more than ${bytesMax}`)
  await writeFile(target, picture)
  console.log(`${target.pathname}: ${picture.length} bytes`)
} finally {
  await browser.close()
}
