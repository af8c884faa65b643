import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type WorkloadName, workloads } from './load/workloads.ts'

const parts = [
  'sameness',
  'pgbench',
  'start',
  'overload',
  'request-log',
  'profile',
  'import',
  'closing',
  'webhooks',
  'bank-files',
  'console',
  'growth',
] as const
type Part = (typeof parts)[number]

export type Options = {
  workloads: WorkloadName[]
  parts: ReadonlySet<Part>
  connections: number[]
  seconds: number
  rounds: number
  isQuick: boolean
  /** Rows of the imported list of members. */
  importRows: number
  /** Members of the partner whose pay cycle closes. */
  closingMembers: number
  /** Pending deliveries of a dead webhook endpoint. */
  backlog: number
  jsonFile: string | undefined
  /** The checkout whose product is measured. */
  productDir: string
  /** Another checkout whose console is measured in turns with the product's. */
  beforeDir: string | undefined
  /** The size of the typical service's pool. */
  typicalConnections: number
}

const usage = `npm run bench -- [options]
  --only LIST            comma-separated, from: ${[...Object.keys(workloads), ...parts].join(', ')}
  --connections LIST     comma-separated (1,8,64,256)
  --seconds N            length of each measurement (4)
  --rounds N             number of rounds; the report shows their medians (3)
  --quick                one round of 2 seconds, small growth and imports: shows that it works, not how fast it is
  --import-rows N        rows of the imported list (1,000,000; 20,000 with --quick)
  --closing-members N    members of the partner whose pay cycle closes (1,000,000; 20,000 with --quick)
  --backlog N            pending deliveries of a dead webhook endpoint (1,000,000; 20,000 with --quick)
  --no-growth            without the growth part, which takes half an hour and 55 GB of disk
  --json FILE            write every figure of every round to this file
  --product DIR          measure the product of another checkout
  --before DIR           measure the console of this checkout too, in turns
  --typical-connections N  pool size of the typical service (20)
Set BENCH_DATABASE_URL to use a running PostgreSQL on this machine, as a superuser, instead of a fresh one.`

/** @throws with the usage */
export function readOptions(): Options {
  const { values } = parseArgs({
    allowNegative: true,
    options: {
      only: { type: 'string' },
      connections: { type: 'string', default: '1,8,64,256' },
      seconds: { type: 'string' },
      rounds: { type: 'string' },
      quick: { type: 'boolean', default: false },
      growth: { type: 'boolean', default: true },
      'import-rows': { type: 'string' },
      'closing-members': { type: 'string' },
      backlog: { type: 'string' },
      json: { type: 'string' },
      product: { type: 'string' },
      before: { type: 'string' },
      'typical-connections': { type: 'string', default: '20' },
    },
  })
  const names = Object.keys(workloads) as WorkloadName[]
  const wanted = values.only?.split(',') ?? [...names, ...parts]
  const unknown = wanted.filter(name => !(name in workloads) && !parts.some(part => part === name))
  if (unknown.length > 0)
    throw new Error(`Unknown workload or part: ${unknown.join(', ')}
${usage}`)
  return {
    workloads: names.filter(name => wanted.includes(name)),
    parts: new Set(parts.filter(part => wanted.includes(part) && (part !== 'growth' || values.growth))),
    connections: values.connections.split(',').map(whole),
    seconds: whole(values.seconds ?? (values.quick ? '2' : '4')),
    rounds: whole(values.rounds ?? (values.quick ? '1' : '3')),
    isQuick: values.quick,
    importRows: whole(values['import-rows'] ?? (values.quick ? '20000' : '1000000')),
    closingMembers: whole(values['closing-members'] ?? (values.quick ? '20000' : '1000000')),
    backlog: whole(values.backlog ?? (values.quick ? '20000' : '1000000')),
    jsonFile: values.json,
    productDir: values.product ?? fileURLToPath(new URL('..', import.meta.url)),
    beforeDir: values.before,
    typicalConnections: whole(values['typical-connections']),
  }
}

function whole(text: string): number {
  const number = Number(text)
  if (Number.isSafeInteger(number) && number > 0) return number
  throw new Error(`${text} is not a positive whole number
${usage}`)
}
