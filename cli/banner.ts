import type { Settings } from '../src/config.ts'
import type { Roles } from '../src/main.ts'
import type { Database } from '../src/open-database.ts'
import { linkTo } from '../src/users/links.ts'

export type Banner = {
  mode: Settings['MIDMONTH_MODE']
  roles: Roles
  address: string | undefined
  database: Pick<Database, 'dataDir' | 'erasures' | 'psqlHint'>
  /** The installation's key and its place. */
  installationKey: string
  /** The sandbox API key, if known. */
  key: string | undefined
  /** The token of a one-time link that signs in to the console of a sandbox. */
  consoleToken: string | undefined
  /** The body of a working example request. */
  example: object | undefined
  /** The oldest partner; in a sandbox, the demo partner. */
  partnerId: string | undefined
}

/** Printed once the service is up: its address, the place of its data, and a first request to try. */
export function banner(start: Banner): string {
  const { mode, roles, address, database, installationKey, key, consoleToken } = start
  const role = roles.api && roles.worker ? '' : roles.api ? ', API only' : ', worker only'
  const places = {
    API: address,
    // The docs page reads the key from the fragment, which browsers never send to a server.
    Docs: address && (key === undefined ? `${address}/docs` : `${address}/docs#key=${key}`),
    // Signs in once, as the demo operator.
    Console: address && consoleToken && linkTo('sign-in', consoleToken, address),
    'Test key': key,
    Data: database.dataDir,
    Key: `${installationKey} (back it up apart from the data)`,
    Erasures: `${database.erasures.journal} (back it up with every backup of the data)`,
    Database: database.psqlHint,
  }
  return [
    `Midmonth is running (${mode}${role}).`,
    '',
    ...Object.entries(places).flatMap(([name, place]) => (place === undefined ? [] : [`  ${name.padEnd(9)} ${place}`])),
    '',
    ...(address === undefined ? [] : firstSteps({ ...start, address })),
    'Press Ctrl-C to stop.',
  ].join('\n')
}

/** Printed after a clean stop: the data is safe, with its location. */
export function farewell({ dataDir }: Banner['database']): string {
  return `Midmonth has stopped. Your data is in ${dataDir ?? 'the database at DATABASE_URL'}; npm start picks up from there.`
}

function firstSteps({ mode, address, database, key, example, partnerId }: Banner & { address: string }): string[] {
  if (partnerId === undefined) {
    return [
      'There are no partners yet. Create one with its tiers and an API key, under the same settings as this service:',
      '',
      '  npm run -s midmonth -- partner create "Acme Couriers"',
      '  npm run -s midmonth -- tier set par_… Silver --currency GBP --lower-limit 1000 --upper-limit 20000 --fee 50',
      '  npm run -s midmonth -- key create par_…',
      '',
    ]
  }
  if (mode === 'live') return []
  if (key === undefined) {
    return [
      'The test key was shown when it was created; only its hash is stored. To create another:',
      '',
      `  npm run -s midmonth -- key create ${partnerId}`,
      '',
    ]
  }
  return [
    ...(database.dataDir === undefined
      ? ['Save the test key now. It is stored only as a hash and cannot be shown again.', '']
      : []),
    ...(example === undefined
      ? []
      : [
          'Try a first request in another terminal:',
          '',
          `  curl -s ${address}/v1/pay/withdrawals/intent \\`,
          `    -H 'x-api-key: ${key}' \\`,
          `    -H 'content-type: application/json' \\`,
          `    -d '${JSON.stringify(example)}'`,
          '',
        ]),
  ]
}
