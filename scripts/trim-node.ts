import { readdir, rm } from 'node:fs/promises'
import path from 'node:path'

// Removes what only native builds need from the Node that npm install brings: 67 MB of C headers, an eighth of the installation.
const installed = path.join(import.meta.dirname, '../node_modules')
for (const name of await readdir(installed)) {
  if (/^node-(linux|darwin|bin-darwin)-(x64|arm64)$/.test(name))
    await rm(path.join(installed, name, 'include'), { recursive: true, force: true })
}
