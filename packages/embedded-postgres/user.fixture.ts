// A process that uses the server until it is killed: node user.fixture.ts <checkoutDir> [<dataDir>]
import { spawn } from 'node:child_process'
import { startEmbeddedPostgres } from './embedded.ts'
import { names } from './names.fixture.ts'

const [checkoutDir = '', dataDir] = process.argv.slice(2)
const { stop, ...server } = await startEmbeddedPostgres({
  names,
  checkoutDir,
  ...(dataDir === undefined ? {} : { dataDir }),
})

// A child that outlives its parent, as a browser or a pager might. It must not keep the server running.
const child = spawn('sleep', ['60'], { stdio: 'ignore', detached: true })

process.stdout.write(`${JSON.stringify({ ...server, child: child.pid })}\n`)
process.on('SIGTERM', async () => {
  await stop()
  process.exit()
})
