import type { Settings } from '../src/config.ts'
import type { Database, Roles } from '../src/main.ts'

export type Greeting = {
  mode: Settings['OPENWAGE_MODE']
  roles: Roles
  address: string | undefined
  database: Pick<Database, 'dataDir' | 'psqlHint'>
  /** The sandbox's key, where it is known. */
  key: string | undefined
  /** The body of a request that works as it stands. */
  example: object | undefined
  /** The oldest partner: in a sandbox the demo. */
  partnerId: string | undefined
}

/** What a person wants to know of a service that has just started: where it is, and what to do first. */
export function greeting(start: Greeting): string {
  const { mode, roles, address, database, key } = start
  const role = roles.api && roles.worker ? '' : roles.api ? ', API only' : ', worker only'
  const places = {
    API: address,
    // Browsers keep a fragment to themselves; the page takes the key from it.
    Docs: address && (key === undefined ? `${address}/docs` : `${address}/docs#key=${key}`),
    'Test key': key,
    Data: database.dataDir,
    'Look in': database.psqlHint,
  }
  return [
    `Openwage is running (${mode}${role}).`,
    '',
    ...Object.entries(places).flatMap(([name, place]) => (place === undefined ? [] : [`  ${name.padEnd(9)} ${place}`])),
    '',
    ...(address === undefined ? [] : firstSteps({ ...start, address })),
    'Ctrl-C stops it.',
  ].join('\n')
}

/** What a person wants to know of a service that has just stopped: that the data is safe, and where. */
export function farewell({ dataDir }: Greeting['database']): string {
  return `Openwage has stopped; its data stays in ${dataDir ?? 'the database of DATABASE_URL'}, and npm start continues there.`
}

function firstSteps({ mode, address, database, key, example, partnerId }: Greeting & { address: string }): string[] {
  if (partnerId === undefined) {
    return [
      'There is no partner yet. Make the first one, its tiers and its key, with the settings of this start:',
      '',
      '  npx openwage partner create "Acme Couriers"',
      '  npx openwage tier set par_… Silver --currency GBP --lower-limit 1000 --upper-limit 20000 --fee 50',
      '  npx openwage key create par_…',
      '',
    ]
  }
  if (mode === 'live') return []
  if (key === undefined) {
    return [
      'The test key was shown when it was made, and is stored nowhere. For another one:',
      '',
      `  npx openwage key create ${partnerId}`,
      '',
    ]
  }
  return [
    ...(database.dataDir === undefined ? ['Keep the test key: it is shown this once, and stored nowhere.', ''] : []),
    ...(example === undefined
      ? []
      : [
          'A first request, to paste into another terminal:',
          '',
          `  curl -s ${address}/v1/pay/withdrawals/intent \\`,
          `    -H 'x-api-key: ${key}' \\`,
          `    -H 'content-type: application/json' \\`,
          `    -d '${JSON.stringify(example)}'`,
          '',
        ]),
  ]
}
