import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type WorkloadName, workloads } from './load/workloads.ts'

const parts = [
  'sameness',
  'pgbench',
  'start',
  'overload',
  'request-log',
  'import',
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
  /** Of the list of members that is imported. */
  importRows: number
  /** Pending deliveries of a dead webhook endpoint. */
  backlog: number
  jsonFile: string | undefined
  /** The checkout whose product is measured. */
  productDir: string
  /** Another checkout whose console is measured in turns with it. */
  beforeDir: string | undefined
  /** The size of the typical service's pool. */
  typicalConnections: number
}

const usage = `npm run bench -- [options]
  --only LIST            of: ${[...Object.keys(workloads), ...parts].join(', ')}
  --connections LIST     (1,8,64,256)
  --seconds N            of each measurement (4)
  --rounds N             interleaved; the report has their medians (3)
  --quick                one round of 2 seconds, small growth and imports; to see that it works, not how fast
  --import-rows N        of the imported list (1,000,000; 20,000 with --quick)
  --backlog N            pending deliveries of a dead webhook endpoint (1,000,000; 20,000 with --quick)
  --no-growth            without the growth part, which takes half an hour and 55 GB of disk
  --json FILE            write every figure of every round there
  --product DIR          measure the product of another checkout
  --before DIR           measure the console of this checkout too, in turns
  --typical-connections N  pool of the typical service (20)
BENCH_DATABASE_URL names a PostgreSQL of this machine to use, as a superuser, instead of a fresh one.`

/** @throws with how it is used */
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
  if (unknown.length > 0) throw new Error(`There is no ${unknown.join(', ')}\n${usage}`)
  return {
    workloads: names.filter(name => wanted.includes(name)),
    parts: new Set(parts.filter(part => wanted.includes(part) && (part !== 'growth' || values.growth))),
    connections: values.connections.split(',').map(whole),
    seconds: whole(values.seconds ?? (values.quick ? '2' : '4')),
    rounds: whole(values.rounds ?? (values.quick ? '1' : '3')),
    isQuick: values.quick,
    importRows: whole(values['import-rows'] ?? (values.quick ? '20000' : '1000000')),
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
  throw new Error(`${text} is not a whole number above zero\n${usage}`)
}
