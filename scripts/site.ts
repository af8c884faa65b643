import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { template } from '../src/members/file.ts'
import { openDocs } from '../src/site/docs/site.ts'

// A web server of files cannot redirect.
const start =
  '<!doctype html>\n<meta http-equiv="refresh" content="0; url=/docs/">\n<a href="/docs/">Documentation</a>\n'

const checkout = new URL('..', import.meta.url)

/**
 * Writes the documentation to a folder that any web server can serve at its root: the pages that a running service has at
 * /docs. They show requests but cannot send them.
 * @returns the number of files
 */
export async function writeSite(folder: string): Promise<number> {
  const openapi = await readFile(new URL('openapi.json', checkout))
  const operators = await readFile(new URL('openapi-operator.json', checkout))
  const docs = await openDocs({
    mode: 'live',
    document: JSON.parse(String(openapi)),
    operators: JSON.parse(String(operators)),
  })
  for (const address of docs.addresses) {
    const found = await docs.find(address)
    if (found === undefined) throw new Error(`${address} was listed but not found`)
    await write(path.join(folder, fileOf(address)), found.file.bytes.identity)
  }
  await write(path.join(folder, 'index.html'), Buffer.from(start))
  await write(path.join(folder, 'openapi.json'), openapi)
  await write(path.join(folder, 'operator/openapi.json'), operators)
  await write(path.join(folder, 'members-template.csv'), Buffer.from(template))
  await cp(new URL('src/members/template.xlsx', checkout), path.join(folder, 'members-template.xlsx'))
  return docs.addresses.length + 5
}

/** A page is the index of a folder of its name, so that its address needs no ending. */
function fileOf(address: string): string {
  return path.extname(address) === '' ? path.join(address, 'index.html') : address
}

async function write(file: string, bytes: Buffer): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true })
  await writeFile(file, bytes)
}
