import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import MiniSearch from 'minisearch'
import pino from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'
import { buildApp } from '../../app.ts'
import { acceptedEncoding } from '../../http/server/static-file.ts'
import { newSecret } from '../../partners/api-keys.ts'
import { renderDescription, renderGuide } from './markdown.ts'

const checkout = new URL('../../../', import.meta.url)
const guides = readdirSync(new URL('docs/', checkout), { recursive: true, encoding: 'utf8' })
  .filter(file => file.endsWith('.md') && file !== 'README.md')
  .sort()

let harness: Harness
beforeAll(async () => {
  harness = await startHarness({ hasDocs: true })
})
afterAll(() => harness.stop())

const get = (url: string, headers: Record<string, string> = {}) => harness.app.inject({ url, headers })

const linksOf = (page: string) => [...page.matchAll(/ (?:href|src)="([^"]*)"/g)].map(match => match[1] ?? '')
const idsOf = (page: string) => [...page.matchAll(/ id="([^"]*)"/g)].map(match => match[1] ?? '')

/** Every page that is reachable from /docs, by address. */
async function readAllPages(): Promise<Map<string, string>> {
  const pages = new Map<string, string>()
  const waiting = ['/docs']
  for (const address of waiting) {
    if (pages.has(address)) continue
    const { statusCode, headers, body } = await get(address)
    expect(statusCode, address).toBe(200)
    expect(headers['x-content-type-options'], address).toBe('nosniff')
    pages.set(address, body)
    if (String(headers['content-type']).startsWith('text/html')) {
      waiting.push(...linksOf(body).flatMap(link => (link.startsWith('/') ? (link.split('#')[0] ?? []) : [])))
    }
  }
  return pages
}

describe('the pages', () => {
  let pages: Map<string, string>
  beforeAll(async () => {
    pages = await readAllPages()
  })
  const htmlPages = () => [...pages].filter(([, body]) => body.startsWith('<!doctype html>'))

  test('every guide and every operation is reachable from /docs and has our name in its title', () => {
    const operations = ['openapi.json', 'openapi-operator.json'].flatMap(file => {
      const { paths } = JSON.parse(readFileSync(new URL(file, checkout), 'utf8')) as {
        paths: Record<string, Record<string, { operationId: string }>>
      }
      return Object.values(paths).flatMap(methods => Object.values(methods))
    })
    expect(operations.length).toBeGreaterThan(30)
    for (const { operationId } of operations) expect([...pages.keys()]).toContain(`/docs/reference/${operationId}`)
    expect(guides.length).toBeGreaterThan(10)
    for (const file of guides) expect([...pages.keys()]).toContain(`/docs/${file.replace('.md', '')}`)
    for (const [address, body] of htmlPages()) expect(body, address).toMatch(/<title>.+ · Midmonth<\/title>/)
  })

  test('every link leads to a page that exists, and every fragment to a heading on it', () => {
    const fragments = htmlPages().flatMap(([address, body]) =>
      linksOf(body)
        .filter(link => link.includes('#'))
        .map(link => ({ page: link.split('#')[0] || address, id: link.split('#')[1] ?? '' })),
    )
    for (const { page, id } of fragments) expect(idsOf(pages.get(page) ?? ''), `${page}#${id}`).toContain(id)
  })

  test('the guides are in the order of the index, with the changelog and without hints for editors', () => {
    const index = readFileSync(new URL('docs/README.md', checkout), 'utf8')
    const named = [...index.matchAll(/\]\((guides\/[^)#]+)\.md/g)].map(([, file]) => `/docs/${file}`)
    const overview = pages.get('/docs') ?? ''
    const listed = linksOf(overview.slice(0, overview.indexOf('<main>'))).filter(link =>
      link.startsWith('/docs/guides/'),
    )
    expect(listed).toEqual(named)
    expect(pages.get('/docs/changelog')).toContain('href="/docs/guides/console"')
    for (const [address, body] of htmlPages()) expect(body, address).not.toContain('Do not edit')
  })

  test('the picture of a guide is inlined in its page', () => {
    expect(pages.get('/docs/guides/embed')).toMatch(
      /<img src="data:image\/png;base64,iVBOR[^"]+" alt="The component shows a quote/,
    )
  })

  test('a browser runs no inline scripts and applies no inline styles', async () => {
    const { headers } = await get('/docs')
    const policy = String(headers['content-security-policy'])
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self';")
    expect(policy).not.toContain('unsafe')
    for (const [address, body] of htmlPages()) {
      const tags = [...body.matchAll(/<[a-z][^>]*>/g)].map(([tag]) => tag)
      const inline = tags.filter(
        tag => / (on[a-z]+|style)=|<style/.test(tag) || (/^<script/.test(tag) && !/ src="/.test(tag)),
      )
      expect(inline, address).toEqual([])
    }
  })

  test('neither an idempotency key nor an API key is filled in', () => {
    for (const [address, body] of htmlPages()) {
      const inputs = [...body.matchAll(/<input type="text" name="x-idempotency-key"[^>]*>/g)].map(([tag]) => tag)
      for (const tag of inputs) expect(tag, address).toContain(' value="" ')
      expect(body, address).toContain('name="key" placeholder="none yet"')
    }
    expect(pages.get('/docs/reference/createWithdrawalIntent')).toContain('name="x-idempotency-key"')
  })

  test('the first request on the overview works once the ids are known', async () => {
    const body =
      /<textarea[^>]*>([^<]*)<\/textarea>/.exec(pages.get('/docs') ?? '')?.[1]?.replaceAll('&quot;', '"') ?? ''
    const memberId = await harness.addMember({ available: 20_000 })
    const answer = await harness.call('POST', '/v1/pay/withdrawals/intent', {
      raw: body.replace(/mem_[0-9a-z]{26}/, memberId),
    })
    expect(answer.status).toBe(201)
  })

  test('the pages accept a sandbox key from their address, but no live key', () => {
    const [, script = ''] = [...pages].find(([address]) => address.endsWith('.js')) ?? []
    const [, pattern = ''] = /keyPattern = \/(.+)\//.exec(script) ?? []
    expect(newSecret('sandbox')).toMatch(new RegExp(pattern))
    expect(newSecret('live')).not.toMatch(new RegExp(pattern))
  })
})

test.each([...guides, 'README.md'])(
  'every link of docs/%s names a file of the repository, so that the link works in the web view',
  file => {
    const text = readFileSync(new URL(`docs/${file}`, checkout), 'utf8').replace(/```[\s\S]*?```/g, '')
    const links = [...text.matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map(match => match[1] ?? '')
    for (const link of links.filter(each => !/^https?:/.test(each))) {
      expect(existsSync(new URL(path.posix.join('docs', path.posix.dirname(file), link), checkout)), link).toBe(true)
    }
  },
)

test('no page tells its reader to run a package that npx would download by name', () => {
  const read = guides.filter(file => !file.startsWith('decisions/'))
  const pages = [...read.map(file => `docs/${file}`), 'README.md', 'packages/sdk/README.md', 'docs/README.md']
  // A generator is named with its version, and runs without a key.
  const fromRegistry = /\b(npx|bunx|pnpm dlx|npm exec(?! --yes --package=[\w-]+@[\d.]+ )) +[\w@-]/
  for (const page of pages) expect(readFileSync(new URL(page, checkout), 'utf8'), page).not.toMatch(fromRegistry)
})

describe('the search', () => {
  type Entry = { id: number; title: string; heading: string; address: string; text: string }
  let entries: Entry[]
  beforeAll(async () => {
    const { body } = await get('/docs/search.js')
    entries = JSON.parse(body.replace('export const entries = ', ''))
  })

  test('finds a heading of a guide, an operation by its path, and a misspelt word', () => {
    // The same options as in page.js, which a browser runs.
    const index = new MiniSearch<Entry>({
      fields: ['title', 'heading', 'text'],
      storeFields: ['address'],
      searchOptions: { prefix: true, fuzzy: 0.2, combineWith: 'AND', boost: { title: 3, heading: 4 } },
    })
    index.addAll(entries)
    const find = (query: string) => index.search(query).map(({ address }) => address)
    expect(find('idempotency')).toContain('/docs/reference/api#idempotency')
    expect(find('idempotncy')).toContain('/docs/reference/api#idempotency')
    expect(find('v1 pay cycles deductions')).toContain('/docs/reference/getPayCycleDeductions')
    // For an exact name, its row comes first.
    expect(find('MemberInsufficientFunds')[0]).toBe('/docs/reference/errors#MemberInsufficientFunds')
    expect(find('UnprocessableEntity')[0]).toBe('/docs/reference/errors#UnprocessableEntity')
    expect(find('MIDMONTH_PUBLIC_URL')[0]).toBe('/docs/reference/settings#MIDMONTH_PUBLIC_URL')
    expect(find('xyzzyplugh')).toEqual([])
  })

  test('leads only to pages and headings that exist', async () => {
    const pages = new Map<string, string>()
    for (const { address } of entries) {
      const [page = '', id] = address.split('#')
      if (!pages.has(page)) pages.set(page, (await get(page)).body)
      if (id !== undefined) expect(idsOf(pages.get(page) ?? ''), address).toContain(id)
    }
    // All guides, and all operations.
    expect(pages.size).toBeGreaterThan(guides.length + 60)
  })

  test('is a script, so that it works where pages may not send requests', async () => {
    const { headers } = await get('/docs/search.js')
    expect(headers['content-type']).toBe('text/javascript; charset=utf-8')
    const [, engine = ''] = /data-engine="([^"]+)"/.exec((await get('/docs')).body) ?? []
    expect((await get(engine)).body).toMatch(/export \{ MiniSearch as default \}/)
  })
})

test('llms.txt lists every guide for partners and operators and every operation; llms-full.txt contains them', async () => {
  const [index, full] = [await get('/llms.txt'), await get('/llms-full.txt')]
  expect(index.headers['content-type']).toBe('text/plain; charset=utf-8')
  expect(index.body).toMatch(/^# Midmonth\n\n> /)
  const wanted = guides.filter(file => /^(guides|reference|operations)\//.test(file))
  expect(wanted.length).toBeGreaterThan(15)
  for (const file of wanted) {
    expect(index.body).toContain(`(/docs/${file.replace('.md', '')})`)
    const text = readFileSync(new URL(`docs/${file}`, checkout), 'utf8').trim()
    expect(full.body).toContain(text.replace(/^Generated from .*? Do not edit\.\s/ms, ''))
  }
  expect(index.body).toContain('[Complete a withdrawal](/docs/reference/completeWithdrawal)')
  expect(full.body).toContain('curl -X POST "$MIDMONTH_URL/v1/pay/withdrawals/complete"')
  expect(index.body).not.toContain('Generated from')
})

describe('files', () => {
  test('scripts and style sheets are cached for ever at an address that contains the hash of their content', async () => {
    const assets = linksOf((await get('/docs')).body).filter(link => link.startsWith('/docs/assets/'))
    expect(assets).toHaveLength(2)
    for (const address of assets) {
      expect(address).toMatch(/-[A-Za-z0-9_-]{16}\.(css|js)$/)
      expect((await get(address)).headers['cache-control']).toBe('public, max-age=31536000, immutable')
    }
    const unknown = await get('/docs/assets/page-0000000000000000.js')
    expect([unknown.statusCode, unknown.headers['cache-control']]).toEqual([404, 'no-store'])
  })

  test('pages and openapi.json are compressed, and revalidated instead of sent again', async () => {
    for (const address of ['/docs', '/docs/reference/api', '/openapi.json']) {
      const plain = await get(address)
      expect(plain.headers).not.toHaveProperty('content-encoding')
      const brotli = await get(address, { 'accept-encoding': 'gzip, deflate, br' })
      expect([brotli.headers['content-encoding'], brotli.headers.vary]).toEqual(['br', 'accept-encoding'])
      expect(brotliDecompressSync(brotli.rawPayload).toString()).toBe(plain.body)
      const gzip = await get(address, { 'accept-encoding': 'gzip' })
      expect(gunzipSync(gzip.rawPayload).toString()).toBe(plain.body)
      const again = await get(address, { 'if-none-match': String(plain.headers.etag) })
      expect([again.statusCode, again.body]).toEqual([304, ''])
      expect((await get(address, { 'if-none-match': '"another"' })).statusCode).toBe(200)
      expect(plain.headers['cache-control']).toBe(address === '/openapi.json' ? 'no-cache' : 'public, max-age=60')
    }
  })

  test.each([
    [undefined, 'identity'],
    ['', 'identity'],
    ['gzip', 'gzip'],
    ['gzip, br;q=0.5', 'br'],
    ['br;q=0, gzip;q=1.0', 'gzip'],
    ['br; q=0.000', 'identity'],
    ['GZIP', 'gzip'],
    ['sbr, xgzip', 'identity'],
  ])('accept-encoding %j gets %s', (header, encoding) => {
    expect(acceptedEncoding(header)).toBe(encoding)
  })
})

describe('the start of the documentation', () => {
  test('/ redirects a browser to it', async () => {
    const answer = await get('/', { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' })
    expect([answer.statusCode, answer.headers.location, answer.headers.vary]).toEqual([302, '/docs', 'accept'])
  })

  test.each(['*/*', 'application/json'])(
    '/ names the address of the documentation to a program that accepts %s',
    async accept => {
      const answer = await get('/', { accept })
      expect([answer.statusCode, answer.json().issues]).toEqual([
        404,
        [{ code: 'NotFound', message: '/ does not exist; see /docs for the documentation' }],
      ])
    },
  )

  test('/docs/ redirects to the documentation', async () => {
    const answer = await get('/docs/')
    expect([answer.statusCode, answer.headers.location]).toEqual([302, '/docs'])
  })

  test.each(['/docs/nothing', '/docs/../package.json', '/docs/reference/api.md', '/docs/assets/page.js'])(
    '%s is not found, in the contract’s shape',
    async address => {
      const answer = await get(address)
      expect([answer.statusCode, answer.json().issues[0].code]).toEqual([404, 'NotFound'])
    },
  )
})

test('with the documentation turned off, only the OpenAPI document is served', async () => {
  const { db, batchDb, withCopying, clock, mode, sealer } = harness
  const bankOf = () => null
  const context = { db, batchDb, withCopying, log: pino({ level: 'silent' }), now: clock.now, mode, sealer, bankOf }
  const app = await buildApp(context, { hasDocs: false })
  for (const url of ['/', '/docs', '/docs/reference/api', '/docs/reference/getMembers']) {
    const answer = await app.inject({ url, headers: { accept: 'text/html' } })
    expect([url, answer.statusCode, answer.json().issues[0].code]).toEqual([url, 404, 'NotFound'])
  }
  expect((await app.inject('/openapi.json')).statusCode).toBe(200)
  await app.close()
})

test('the guides install from the configured public address, regardless of the host that a request names', async () => {
  const { db, batchDb, withCopying, clock, mode, sealer } = harness
  const context = {
    db,
    batchDb,
    withCopying,
    log: pino({ level: 'silent' }),
    now: clock.now,
    mode,
    sealer,
    bankOf: () => null,
  }
  const app = await buildApp({ ...context, publicUrl: 'https://pay.example.com/' })
  const headers = { host: 'evil.example', 'x-forwarded-host': 'evil.example' }
  for (const url of ['/docs/guides/sdk', '/docs/reference/cli', '/llms-full.txt']) {
    const { body } = await app.inject({ url, headers })
    expect(body, url).toMatch(
      /npm install (--global )?("|&quot;)https:\/\/pay\.example\.com\/sdk\/midmonth-\w+-[\d.]+\.tgz/,
    )
    expect(body, url).not.toContain('evil.example')
    // Without the setting, the guides use the reader's own variable.
    expect((await get(url, headers)).body, url).toMatch(/("|&quot;)\$MIDMONTH_URL\/sdk\/midmonth-/)
  }
  await app.close()
})

test('in live mode, pages show requests but cannot send them', async () => {
  const live = await startHarness({ mode: 'live', hasDocs: true })
  for (const url of ['/docs', '/docs/reference/createWithdrawalIntent']) {
    const { body, headers } = await live.app.inject(url)
    expect(body).toContain('curl -X POST')
    expect(body).not.toContain('type="submit"')
    expect(body).not.toContain('name="key"')
    expect(headers['content-security-policy']).toContain("connect-src 'none'")
  }
  await live.stop()
})

describe('Markdown', () => {
  const isGuide = (file: string) => ['reference/api.md', 'operations/running.md', 'ledger.md'].includes(file)
  const render = (text: string, file = 'api.md') => renderGuide(text, { file, isGuide }).text

  test('links between guides become links to their pages', () => {
    expect(render('[a](operations/running.md#on-a-server)')).toContain('href="/docs/operations/running#on-a-server"')
    expect(render('[a](../ledger.md)', 'operations/running.md')).toContain('href="/docs/ledger"')
    expect(render('[a](https://example.com/x?a=1&b=2)')).toContain('href="https://example.com/x?a=1&amp;b=2"')
    expect(render('[a](#here)')).toContain('href="#here"')
  })

  test('a link to a file that is not served becomes text', () => {
    expect(render('[the benchmark](../bench/README.md)')).toBe('<p>the benchmark</p>\n')
    expect(render('[a](javascript:alert(1))')).not.toContain('href')
  })

  test('headings have the ids of the repository’s web view', () => {
    const text = render('## `a` & B’s rule: 1,000!\n\n## Twice\n\n## Twice')
    expect(idsOf(text)).toEqual(['a--bs-rule-1000', 'twice', 'twice-1'])
  })

  test('HTML in Markdown is shown as text', () => {
    expect(render('a <script>alert(1)</script>')).toContain('&lt;script&gt;')
    expect(renderDescription('a <b>c</b>\n\n<img src=x>').text).not.toMatch(/<b>|<img/)
  })
})
