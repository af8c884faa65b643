import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { atEnd, end } from './ending.ts'
import { openServer } from './postgres.ts'
import { cpuMsOf, rssMbOf } from './processes.ts'
import { seedEmployer, seedPast, settle } from './seed.ts'
import { operate, startService } from './service.ts'
import { sendLoad } from './wrk.ts'

const productDir = fileURLToPath(new URL('..', import.meta.url))
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => void end().then(() => process.exit(130)))
}
try {
  await bench()
} finally {
  await end()
}

async function bench() {
  const folder = path.join(tmpdir(), `openwage-bench-${process.pid}`)
  mkdirSync(folder)
  atEnd(() => rmSync(folder, { recursive: true }))
  const t0 = performance.now()
  const lap = (what: string) => console.log(`${((performance.now() - t0) / 1000).toFixed(1)} s ${what}`)
  const server = await openServer()
  const url = await server.create('bench_template')
  await operate(['migrate'], { databaseUrl: url, productDir })
  lap('migrated')
  const one = await seedEmployer(url, { name: 'One', firstMember: 0, members: 100_000 })
  lap('members')
  await seedPast(url, one, { intents: 100_000, pending: 10_000 })
  lap('past')
  await settle(url)
  lap('settled')
  const keysFile = path.join(folder, 'one.keys')
  writeFileSync(keysFile, `${one.key}\n`)
  const services = []
  for (const side of ['product', 'typical'] as const) {
    const databaseUrl = await server.create(`bench_${side}`, { template: 'bench_template' })
    services.push(await startService(side, { databaseUrl, logs: folder, productDir, typicalConnections: 20 }))
  }
  lap('started')
  for (let round = 0; round < 3; round++) {
    const perSecond: number[] = []
    for (const { side, address, pid } of services) {
      const load = { requests: 'intent', keysFile, firstMember: 0, membersPerKey: 100_000, firstIntent: 0 } as const
      await sendLoad(address, load, { connections: 64, seconds: 1 })
      const before = [cpuMsOf(pid), cpuMsOf(server.postmasterPid ?? 0)]
      const seen = await sendLoad(address, load, { connections: 64, seconds: 2 })
      const after = [cpuMsOf(pid), cpuMsOf(server.postmasterPid ?? 0)]
      const [service, postgres] = after.map((ms, index) => ((ms - (before[index] ?? 0)) / seen.requests).toFixed(3))
      console.log(side, { ...seen, service, postgres, rssMb: rssMbOf(pid) })
      perSecond.push(seen.perSecond)
    }
    console.log(`product/typical ${((perSecond[0] ?? 0) / (perSecond[1] ?? 0)).toFixed(2)}`)
  }
}
