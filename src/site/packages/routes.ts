import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { App } from '../../http/server/server.ts'
import { immutable } from '../../http/server/static-file.ts'
import { problem } from '../../kernel/errors.ts'

/** The folder in which `npm install` builds the packages. */
export const packagesFolder = fileURLToPath(new URL('../../../packages/dist/', import.meta.url))

/** Serves the SDK, the component and the command line in the version of this service, as npm packages. */
export function packageFiles(app: App): void {
  app.get('/sdk/*', async (request, reply) => {
    const name = (request.params as { '*': string })['*']
    const file = /^[a-z0-9.-]+\.tgz$/.test(name) ? await packageIn(path.join(packagesFolder, name)) : undefined
    if (file === undefined)
      throw problem('UnknownPath', 'There is no such package here; see /docs/guides/sdk for the names and the version')
    reply.headers({ 'cache-control': immutable, 'x-content-type-options': 'nosniff' })
    return reply.type('application/gzip').send(file)
  })
}

async function packageIn(file: string): Promise<Buffer | undefined> {
  return await readFile(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
}
