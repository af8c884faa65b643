import { readFile } from 'node:fs/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { App } from '../../http/server/server.ts'
import { briefly, immutable, type StaticFile, sendStaticFile, staticFile } from '../../http/server/static-file.ts'
import { problem } from '../../kernel/errors.ts'

type Served = { file: StaticFile; cacheControl: string; headers?: Record<string, string> }

const script = 'text/javascript; charset=utf-8'

/**
 * The component for partners' pages, at a permanent address and at one that changes with its content; and the hosted page with
 * the component, at /m, for members without a partner's page.
 */
export function memberPageFiles(app: App): void {
  let reading: Promise<Map<string, Served>> | undefined
  for (const url of ['/m', '/m/:file', '/components/:file']) app.get(url, answer)

  async function answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    reading ??= readFiles()
    const found = (await reading).get(request.url.split('?', 1)[0] ?? '')
    // The message omits the path, which may be a misplaced token.
    if (found === undefined) throw problem('UnknownPath', 'There is no such page')
    return sendStaticFile(request, reply.headers(found.headers ?? {}), found)
  }
}

async function readFiles(): Promise<Map<string, Served>> {
  const [component, style, page] = await Promise.all([
    read('midmonth-withdraw.js', script),
    read('page.css', 'text/css; charset=utf-8'),
    read('page.js', script),
  ])
  const addresses = {
    'midmonth-withdraw.js': `/components/midmonth-withdraw-${component.hash}.js`,
    'page.css': `/m/page-${style.hash}.css`,
    'page.js': `/m/page-${page.hash}.js`,
  }
  const source = await readFile(new URL('page.html', import.meta.url), 'utf8')
  const html = source.replace(
    /\{([\w.-]+)\}/g,
    (whole, name: string) => addresses[name as keyof typeof addresses] ?? whole,
  )
  return new Map<string, Served>([
    [
      '/m',
      { file: await staticFile('text/html; charset=utf-8', html), cacheControl: 'no-store', headers: pageHeaders },
    ],
    [addresses['page.css'], { file: style, cacheControl: immutable }],
    [addresses['page.js'], { file: page, cacheControl: immutable }],
    [addresses['midmonth-withdraw.js'], { file: component, cacheControl: immutable, headers: openToAll }],
    ['/components/midmonth-withdraw.js', { file: component, cacheControl: briefly, headers: openToAll }],
  ])
}

async function read(name: string, type: string): Promise<StaticFile> {
  return await staticFile(type, await readFile(new URL(name, import.meta.url)))
}

/** Any page may load the component, also as a module or with an integrity hash. It contains no secrets. */
const openToAll = { 'access-control-allow-origin': '*', 'cross-origin-resource-policy': 'cross-origin' }

const pageHeaders = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'x-robots-tag': 'noindex',
}
