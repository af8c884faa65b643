import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { App } from '../../http/server/server.ts'
import { immutable, revalidated, type StaticFile, sendStaticFile, staticFile } from '../../http/server/static-file.ts'
import { problem } from '../../kernel/errors.ts'

/** Built by `npm install`. */
const built = new URL('../../../packages/console/dist/', import.meta.url)

type Console = { page: StaticFile; assets: Map<string, StaticFile> }

/**
 * The web console: one page for every address below /console, and its assets, whose names contain a hash of their content.
 * The page holds no data; it calls the API with the reader's session.
 */
export function consoleFiles(app: App): void {
  let reading: Promise<Console | undefined> | undefined
  const files = async (): Promise<Console> => {
    reading ??= readConsole()
    const found = await reading
    if (found !== undefined) return found
    // The console may be built while the service runs.
    reading = undefined
    throw problem(
      'UnknownPath',
      'The console is not built; run npm install with development dependencies, then open this page again',
    )
  }
  app.get('/console/assets/:file', async (request, reply) => {
    const { assets } = await files()
    const file = assets.get(path.posix.basename(request.url.split('?', 1)[0] ?? ''))
    if (file === undefined) throw problem('UnknownPath', 'There is no such file')
    reply.header('x-content-type-options', 'nosniff')
    return sendStaticFile(request, reply, { file, cacheControl: immutable })
  })
  for (const url of ['/console', '/console/*']) app.get(url, page)

  async function page(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    // Not the page: a client that calls a wrong address gets an error in the shape of the API.
    if (request.url.startsWith('/console/v1/')) throw problem('UnknownPath', 'No operation has this path')
    const file = (await files()).page
    return sendStaticFile(request, reply.headers(pageHeaders), { file, cacheControl: revalidated })
  }
}

async function readConsole(): Promise<Console | undefined> {
  const html = await readFile(new URL('index.html', built)).catch(() => undefined)
  if (html === undefined) return undefined
  const assets = new Map<string, StaticFile>()
  for (const name of await readdir(new URL('assets/', built))) {
    const type = types[path.extname(name)]
    if (type === undefined) throw new Error(`The console has a file of an unknown type: ${name}`)
    assets.set(name, await staticFile(type, await readFile(new URL(`assets/${name}`, built))))
  }
  return { page: await staticFile('text/html; charset=utf-8', html), assets }
}

const types: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

const pageHeaders = {
  // The script's first request, which can start before the script has loaded.
  link: '</console/v1/session>; rel=preload; as=fetch; crossorigin',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=()',
  'x-content-type-options': 'nosniff',
  'x-robots-tag': 'noindex',
}
