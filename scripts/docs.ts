import { rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { writeSite } from './site.ts'

const folder = fileURLToPath(new URL('../site', import.meta.url))
await rm(folder, { recursive: true, force: true })
console.log(`site/: ${await writeSite(folder)} files. Serve the folder at the root of a web server.`)
