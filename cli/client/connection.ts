import { type Command, InvalidArgumentError } from 'commander'
import type { Settings } from '../../packages/sdk/src/client.ts'
import { MidmonthError } from '../../packages/sdk/src/errors.ts'
import { Midmonth } from '../../packages/sdk/src/midmonth.ts'
import { terminal } from '../terminal.ts'
import { ForeignAnswer, Unavailable, WrongUsage } from './failure.ts'
import { defaultProfile, profileName, readProfile } from './profiles.ts'

/** The options that say which service to call, and with which key. */
export type Address = { url?: string; key?: string; profile?: string }

export const defaultUrl = 'http://127.0.0.1:8080'

// With the back-off of the SDK, about a minute: covers a restart, and uploads that are ahead of ours.
const retriesMax = 10

export function addConnectionOptions(command: Command): Command {
  return command
    .option('--profile <name>', 'use the server and key stored by midmonth login --profile <name>', profileName)
    .option('--url <url>', `address of the service (default: MIDMONTH_URL, the login, or ${defaultUrl})`, serverAddress)
    .option('--key <key>', 'API key; prefer midmonth login or MIDMONTH_API_KEY, which process listings don’t show')
}

/** Parses the address of a service given as an option. */
export function serverAddress(text: string): string {
  const address = addressOf(text)
  if (address === undefined) throw new InvalidArgumentError('Use a URL, for example https://pay.example.com.')
  return address
}

/** @param name of the setting or question, for the message */
export function requireAddress(name: string, text: string): string {
  const address = addressOf(text)
  if (address === undefined) throw new WrongUsage(`${name} must be like https://pay.example.com`)
  return address
}

function addressOf(text: string): string | undefined {
  // A password in an address would be shown by messages.
  if (!/^https?:\/\/[^\s?#@]+$/.test(text) || !URL.canParse(text)) return undefined
  return text.replace(/\/+$/, '')
}

/** A client for the service that options, environment or login name. @throws WrongUsage */
export async function connect(options: Address): Promise<Midmonth> {
  return new Midmonth(await settingsOf(options))
}

/** @throws WrongUsage if there is no key, or if it belongs to another address */
export async function settingsOf(options: Address): Promise<Settings> {
  return clientSettings(await resolveAddress(options))
}

export function clientSettings({ url, key }: Pick<Resolved, 'url' | 'key'>): Settings {
  return { baseUrl: url, apiKey: key, retriesMax, fetch: fetchFrom(url) }
}

export type Resolved = { url: string; key: string; source: string }

/** Options win over the environment, which wins over the login. A stored key is sent only to the address it was stored for. */
export async function resolveAddress({ url, key, profile }: Address): Promise<Resolved> {
  const { MIDMONTH_URL = '', MIDMONTH_API_KEY = '' } = terminal().env
  const chosenUrl = url ?? (MIDMONTH_URL === '' ? undefined : requireAddress('MIDMONTH_URL', MIDMONTH_URL))
  const given = (key ?? MIDMONTH_API_KEY).trim()
  if (given !== '') {
    if (profile !== undefined) {
      const source = key === undefined ? 'MIDMONTH_API_KEY is set, which wins over logins; unset it' : 'Leave out --key'
      throw new WrongUsage(`${source} to use the profile ${profile}`)
    }
    return {
      url: chosenUrl ?? defaultUrl,
      key: checkedKey(given),
      source: key === undefined ? 'MIDMONTH_API_KEY' : '--key',
    }
  }
  const name = profile ?? defaultProfile
  const stored = await readProfile(name)
  if (stored === undefined) {
    const hint = profile === undefined ? 'run midmonth login' : `run midmonth login --profile ${profile}`
    throw new WrongUsage(`No API key: ${profile === undefined ? 'set MIDMONTH_API_KEY, or ' : ''}${hint}`)
  }
  if (chosenUrl !== undefined && chosenUrl !== stored.url) {
    const where = url === undefined ? 'MIDMONTH_URL' : '--url'
    throw new WrongUsage(
      `The key of the profile ${name} is for ${stored.url}, but ${where} is ${chosenUrl}; leave that out, or set MIDMONTH_API_KEY too`,
    )
  }
  return { ...stored, source: `profile ${name}` }
}

/** @throws WrongUsage if it cannot be a key */
export function checkedKey(text: string): string {
  if (!/^[\x21-\x7e]+$/.test(text))
    throw new WrongUsage('The API key contains spaces or invalid characters; copy it again')
  return text
}

/**
 * The fetch of the SDK, which tells a wrong address from a service that is gone for a moment: a host that has never answered is
 * not retried, and one that answers with something else is named.
 */
function fetchFrom(url: string): typeof fetch {
  let hasAnswered = false
  return async (input, init) => {
    const answer = await fetch(input, init).catch((error: unknown) => {
      const reason = reasonOfRefusal(error)
      if (hasAnswered || reason === undefined) throw error
      throw new Unavailable(
        `Cannot reach Midmonth at ${url}: ${reason}. Start it, or set its address with --url, MIDMONTH_URL or midmonth login${proxyHint()}`,
      )
    })
    hasAnswered = true
    const headers = new Headers(init?.headers)
    const wantsJson = headers.get('accept') === 'application/json'
    if (answer.status < 400 && wantsJson && !answer.headers.get('content-type')?.includes('json')) {
      await answer.body?.cancel()
      const message = `${url} is not a Midmonth API; set the right address with --url or MIDMONTH_URL`
      const idempotencyKey = headers.get('x-idempotency-key')
      const isChange = idempotencyKey !== null && !String(input).includes('dryRun=true')
      throw isChange ? new ForeignAnswer(message, { idempotencyKey }) : new MidmonthError(message)
    }
    return answer
  }
}

/** Node goes through a proxy only if told to. */
function proxyHint(): string {
  const { NODE_USE_ENV_PROXY, HTTPS_PROXY, https_proxy, HTTP_PROXY, http_proxy } = terminal().env
  const hasProxy = Boolean(HTTPS_PROXY || https_proxy || HTTP_PROXY || http_proxy)
  return hasProxy && NODE_USE_ENV_PROXY !== '1' ? '. To use the proxy of the environment, set NODE_USE_ENV_PROXY=1' : ''
}

/** Errors that come before anything is sent. Undefined for others, such as a connection that broke. */
function reasonOfRefusal(error: unknown): string | undefined {
  const cause = error instanceof Error ? error.cause : undefined
  const first = cause instanceof AggregateError ? cause.errors[0] : cause
  const { code = '', message = '' } = (first ?? {}) as NodeJS.ErrnoException
  if (code === 'ECONNREFUSED') return 'connection refused'
  // Ports of other protocols, which fetch never connects to.
  if (message === 'bad port') return 'the port is reserved for another protocol'
  const isBeforeSending =
    /^(ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/.test(code) ||
    // Of TLS.
    /^(CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_)/.test(code)
  return isBeforeSending ? message : undefined
}
