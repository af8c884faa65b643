#!/usr/bin/env node
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

// Starts the CLI under the Node that npm install brings. Plain JavaScript, because the machine's own Node may be too old
// for TypeScript. No dependencies, because they may not be installed yet.

const nodeMajorMin = 24
const flags = [
  // MiB. Twice as much is 10 % faster and costs 200 MB (docs/internals/performance.md).
  '--max-semi-space-size=16',
  // MiB. Ordinary load needs a tenth. A leak ends the process before it takes the whole machine's memory.
  '--max-old-space-size=1024',
]

const checkout = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const installed = path.join(checkout, 'node_modules')

if (!existsSync(path.join(installed, 'commander'))) {
  refuse(`Dependencies are not installed: run npm install in ${checkout} first`)
}
const node = findNode()
const args = [
  ...process.execArgv,
  ...flags,
  path.join(checkout, 'cli/midmonth.ts'),
  // Drops node and this file.
  ...process.argv.slice(2),
]
const environment = {
  ...process.env,
  // Halves the load time.
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? path.join(installed, '.cache/midmonth'),
}
// Replaces this process where Node can, so that signals, exit code and parent stay right.
if (process.execve !== undefined) process.execve(node, [node, ...args], environment)
else runAsChild()

/** Prefers the Node that npm install brought over the one on the machine. */
function findNode() {
  const bundled = path.join(installed, '.bin/node')
  if (existsSync(bundled)) return bundled
  if (Number.parseInt(process.versions.node, 10) >= nodeMajorMin) return process.execPath
  return refuse(
    `Node ${nodeMajorMin} or later is required, but this is ${process.version}: run npm install --include=optional, which brings one`,
  )
}

function runAsChild() {
  // If this process is killed, no signal reaches the program, which then stops when it notices (cli/shutdown.ts).
  const env = { ...environment, LAUNCHER_PID: String(process.pid) }
  const child = spawn(node, args, { stdio: 'inherit', env })
  const pass = signal => child.kill(signal)
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals) process.on(signal, pass)
  child.on('error', error => refuse(`Cannot run ${node}: ${error.message}`))
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code)
    for (const each of signals) process.off(each, pass)
    process.kill(process.pid, signal)
  })
}

function refuse(reason) {
  console.error(`midmonth: ${reason}`)
  process.exit(1)
}
