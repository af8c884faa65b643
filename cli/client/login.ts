import { text } from 'node:stream/consumers'
import { Command } from 'commander'
import { ApiError } from '../../packages/sdk/src/errors.ts'
import { Midmonth } from '../../packages/sdk/src/midmonth.ts'
import { askInTurn } from '../ask.ts'
import { examples } from '../help.ts'
import { printResult } from '../print.ts'
import { terminal, writeErrorLine } from '../terminal.ts'
import {
  type Address,
  addConnectionOptions,
  checkedKey,
  clientSettings,
  defaultUrl,
  type Resolved,
  requireAddress,
  resolveAddress,
  serverAddress,
} from './connection.ts'
import { WrongUsage } from './failure.ts'
import { defaultProfile, listProfiles, profileName, removeProfile, writeProfile } from './profiles.ts'

export const loginCommand = new Command('login')
  .option('--url <url>', `address of the service (default: MIDMONTH_URL, or ${defaultUrl})`, serverAddress)
  .option('--profile <name>', 'a name for this login, if you have several', profileName, defaultProfile)
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    `${examples('login', 'login --url https://pay.example.com --profile live < key-file')}

On a terminal it asks for the address and the key. Otherwise the key is read from standard input. It is checked by a request,
and stored in a file that only you can read.`,
  )
  .action(async ({ url, profile, json }: Required<Pick<Address, 'profile'>> & Address & { json?: boolean }) => {
    const login = await readLogin(url)
    const { note } = await checkKey(login)
    const file = await writeProfile(profile, login)
    for (const warning of warningsOf(login)) writeErrorLine(warning)
    printResult(
      { json },
      {
        value: { profile, url: login.url, key: hintOf(login.key), file, note },
        text: () =>
          [
            `Logged in to ${login.url} as ${hintOf(login.key)}, profile ${profile}.`,
            ...(note === null ? [] : [note]),
          ].join('\n'),
      },
    )
  })

export const logoutCommand = new Command('logout')
  .option('--profile <name>', 'the login to remove', profileName, defaultProfile)
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    `${examples('logout', 'logout --profile live')}

The key stays valid: revoke it with midmonth key revoke if others may have seen it.`,
  )
  .action(async ({ profile, json }: { profile: string; json?: boolean }) => {
    const wasThere = await removeProfile(profile)
    printResult(
      { json },
      {
        value: { profile, removed: wasThere },
        text: () => (wasThere ? `Removed the profile ${profile}.` : `There is no profile ${profile}.`),
      },
    )
  })

export const whoamiCommand = addConnectionOptions(new Command('whoami'))
  .option('--json', 'print JSON')
  .addHelpText('after', examples('whoami', 'whoami --profile live'))
  .action(async (options: Address & { json?: boolean }) => {
    const found = await resolveAddress(options)
    const { note } = await checkKey(found)
    const { url, key, source } = found
    const mode = modeOf(key)
    const profiles = await listProfiles()
    printResult(options, {
      value: { url, key: hintOf(key), mode, source, profiles, note },
      text: () =>
        [`${url} as ${hintOf(key)} (${mode}), by ${source}.`, ...(note === null ? [] : [note])].join('\n') +
        (profiles.length === 0 ? '' : `\nLogins: ${profiles.join(', ')}`),
    })
  })

function warningsOf({ url }: { url: string }): string[] {
  const { protocol, hostname } = new URL(url)
  const isOpen = protocol === 'http:' && !/^(localhost|127\..*|\[::1\])$/.test(hostname)
  return [
    ...(isOpen ? ['The address is not encrypted (http), so others on the network can read the key.'] : []),
    ...(terminal().env.MIDMONTH_API_KEY
      ? ['MIDMONTH_API_KEY is set, and wins over this login until it is unset.']
      : []),
  ]
}

async function readLogin(url: string | undefined): Promise<{ url: string; key: string }> {
  const { stdin, env } = terminal()
  const suggested = url ?? (env.MIDMONTH_URL ? requireAddress('MIDMONTH_URL', env.MIDMONTH_URL) : defaultUrl)
  if (!stdin.isTTY) {
    const key = (await text(stdin)).trim()
    if (key === '')
      throw new WrongUsage('No key on standard input; run midmonth login on a terminal, or pipe the key in')
    return { url: suggested, key: checkedKey(key) }
  }
  const ofAddress = url === undefined ? [{ text: `Address of the service [${suggested}]: ` }] : []
  const answers = await askInTurn([...ofAddress, { text: 'API key (not shown): ', isSecret: true }])
  const key = answers[ofAddress.length]?.trim() ?? ''
  if (key === '') throw new WrongUsage('No key was entered; nothing was stored')
  const chosen = url ?? (answers[0]?.trim() || suggested)
  return { url: requireAddress('The address', chosen), key: checkedKey(key) }
}

/**
 * Sends a request that every key may send. @returns notes for the owner of a valid key
 * @throws ApiError if the service does not know the key
 */
async function checkKey(login: Pick<Resolved, 'url' | 'key'>): Promise<{ note: string | null }> {
  const midmonth = new Midmonth(clientSettings(login))
  try {
    await midmonth.idempotencyKeys.get('midmonth-login')
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    if (error.code === 'NotFound') {
      await requireApi(midmonth, login.url)
      // There is no such idempotency key, but the API key is accepted.
      return { note: null }
    }
    if (error.status !== 403) throw error
    return { note: error.issues.map(({ message }) => message).join('; ') }
  }
  return { note: null }
}

/** An address with a wrong path has no operations, so the response to any key is 404. @throws Error */
async function requireApi(midmonth: Midmonth, url: string): Promise<void> {
  try {
    await midmonth.service.getErrors()
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 404)) throw error
    throw new Error(`There is no API at ${url}; check the address, which ends before /v1`, { cause: error })
  }
}

/** Enough to tell keys apart, as midmonth key list shows them. */
function hintOf(key: string): string {
  return `${key.slice(0, 12)}…`
}

function modeOf(key: string): 'sandbox' | 'live' | 'unknown' {
  if (key.startsWith('mm_test_')) return 'sandbox'
  return key.startsWith('mm_live_') ? 'live' : 'unknown'
}
