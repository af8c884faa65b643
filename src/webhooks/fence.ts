import type { LookupAddress } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import type { LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Which targets deliveries may be sent to. */
export type FenceRules = {
  /** Whether http is also allowed. Only in a sandbox. */
  allowsHttp: boolean
  allowsLoopback: boolean
  /** Ports of this machine that are never a target: those of our own database. */
  refusedPorts: readonly number[]
}

/** Requests must not be sent to the target of a delivery. The message says why. */
export class TargetRefused extends Error {}

const globalIpv6 = ipaddr.IPv6.parseCIDR('2000::/3')
// A public address, but the metadata service of Azure's virtual machines.
const metadataAddresses = new Set(['168.63.129.16'])
const localhostName = /(^|\.)localhost\.?$/
// Less than the 15 s of an attempt: c-ares doubles the time for the second try.
const dnsLimits = { timeout: 3_000, tries: 2 }
// Lower ports have services such as SSH and SMTP, which a request must not reach.
const ownPortsFrom = 1024

/**
 * Guards outgoing requests against server-side request forgery: a partner chooses the URL, so without the fence it could reach
 * whatever this server can. A name is judged by its addresses each time a connection is opened, and the address that was
 * connected to is judged again, since the DNS answer may change between the two.
 */
export class Fence {
  readonly rules: FenceRules
  private readonly resolve: Resolve

  /** @param resolve resolves a name to all its addresses */
  constructor(rules: FenceRules, resolve: Resolve = resolveBy(new Resolver(dnsLimits))) {
    this.rules = rules
    this.resolve = resolve
  }

  /**
   * Judges everything that the URL itself says: all but the addresses of a name.
   * @throws TargetRefused
   */
  judgeUrl(text: string): URL {
    if (!URL.canParse(text)) throw new TargetRefused('is not a valid URL')
    const url = new URL(text)
    const { allowsHttp } = this.rules
    if (url.protocol !== 'https:' && !(allowsHttp && url.protocol === 'http:'))
      throw new TargetRefused(`must be ${allowsHttp ? 'an https or http' : 'an https'} URL`)
    if (url.username !== '' || url.password !== '')
      throw new TargetRefused('must not contain a user name or password; use headers')
    if (url.hash !== '') throw new TargetRefused('must not have a fragment')
    const port = portOf(url)
    if (port < ownPortsFrom && port !== 80 && port !== 443)
      throw new TargetRefused(`must not have the port ${port}; use 80, 443, or 1024 and above`)
    // The parser has already normalised decimal, octal and hexadecimal forms of an IPv4 address.
    const host = hostOf(url)
    if (ipaddr.isValid(host)) this.judgeAddress(host, port)
    else if (localhostName.test(host)) this.judgeLoopback(port)
    return url
  }

  /** @throws TargetRefused */
  judgeAddress(text: string, port: number): void {
    if (!ipaddr.isValid(text)) throw new TargetRefused(`resolves to ${text}, which is not an IP address`)
    const address = ipaddr.parse(text)
    const range = address.range()
    if (range === 'loopback') {
      this.judgeLoopback(port)
      return
    }
    const isGlobal = range === 'unicast' && (address.kind() === 'ipv4' || address.match(globalIpv6))
    if (!isGlobal || metadataAddresses.has(address.toString()))
      throw new TargetRefused('must not lead to a private or reserved address')
  }

  /** Resolves the host for the socket that connects, and refuses the DNS answer if any of its addresses is refused. */
  lookupFor(port: number): LookupFunction {
    return (hostname, { all }, callback) => {
      this.resolve(hostname, (error, addresses) => {
        if (error !== null) return callback(error, '', 0)
        const [first] = addresses
        if (first === undefined) return callback(new TargetRefused('resolves to no address'), '', 0)
        try {
          for (const { address } of addresses) this.judgeAddress(address, port)
        } catch (refusal) {
          return callback(refusal as TargetRefused, '', 0)
        }
        if (all) callback(null, addresses)
        else callback(null, first.address, first.family)
      })
    }
  }

  private judgeLoopback(port: number): void {
    if (!this.rules.allowsLoopback)
      throw new TargetRefused('must not lead to this machine, unless MIDMONTH_WEBHOOK_LOOPBACK allows it')
    if (this.rules.refusedPorts.includes(port)) throw new TargetRefused('must not lead to the database of the service')
  }
}

function portOf({ port, protocol }: URL): number {
  // The parser drops the default port of the protocol.
  if (port !== '') return Number(port)
  return protocol === 'https:' ? 443 : 80
}

/** The host of a URL, without the brackets of an IPv6 address. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}

type Resolve = (
  hostname: string,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/**
 * Resolves names to all their addresses, by DNS only. `dns.lookup` would also read the hosts file, but it blocks one of libuv's
 * few threads while a name server is silent, so one partner's names could delay the deliveries of all others.
 */
export function resolveBy(resolver: Pick<Resolver, 'resolve4' | 'resolve6'>): Resolve {
  return (hostname, callback) => {
    // A name server must not be asked about localhost. Source: RFC 6761, section 6.3
    if (localhostName.test(hostname)) return callback(null, loopback)
    void Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]).then(([ipv4, ipv6]) => {
      if (ipv4.status === 'rejected' && ipv6.status === 'rejected') return callback(ipv4.reason, [])
      callback(null, [...addressesIn(ipv4, 4), ...addressesIn(ipv6, 6)])
    })
  }
}

const loopback = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
]

function addressesIn(answer: PromiseSettledResult<string[]>, family: 4 | 6): LookupAddress[] {
  return answer.status === 'rejected' ? [] : answer.value.map(address => ({ address, family }))
}
