import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { MemberId, WithdrawalIntentId } from '@midmonth/sdk'
import { ApiError, Midmonth, money, WebhookVerificationError } from '@midmonth/sdk'

// A gig platform whose riders withdraw what they have earned. See README.md.
const { MIDMONTH_URL = 'http://127.0.0.1:8080', MIDMONTH_API_KEY = '' } = process.env
const { PORT = '3000', RIDER = 'sam.okafor@example.com' } = process.env
const midmonth = new Midmonth({ apiKey: MIDMONTH_API_KEY, baseUrl: MIDMONTH_URL })

type Rider = { memberId: MemberId; name: string }
/** A signed-in browser. Your platform has its own sign-in; here one rider is always signed in. */
type Session = { rider: Rider; quotes: Map<string, WithdrawalIntentId>; streams: Set<ServerResponse> }
const sessions = new Map<string, Session>()
const seenEvents = new Set<string>()
const address = `http://127.0.0.1:${PORT}`

const rider = await riderByEmail(RIDER)
const page = (name: string) => readFileSync(new URL(name, import.meta.url))
const files: Record<string, { type: string; content: Buffer }> = {
  '/': { type: 'text/html; charset=utf-8', content: page('page.html') },
  // The same by the component, which brings its own form and follows the withdrawal.
  '/embedded': { type: 'text/html; charset=utf-8', content: embedded() },
  '/embedded.js': { type: 'text/javascript; charset=utf-8', content: page('embedded.js') },
  '/page.js': { type: 'text/javascript; charset=utf-8', content: page('page.js') },
  '/page.css': { type: 'text/css; charset=utf-8', content: page('page.css') },
}

const server = createServer((request, response) => {
  handle(request, response).catch(error => fail(response, error))
})
await new Promise<void>(resolve => server.listen(Number(PORT), '127.0.0.1', resolve))
// The secret is shown once. A real platform creates its endpoint once, too, and keeps the secret with its other secrets.
const webhook = await midmonth.webhooks.create({ url: `${address}/webhooks/midmonth`, types: ['withdrawal.*'] })
console.log(`${rider.name} is signed in at ${address}\nPress Ctrl-C to stop.`)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop())

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', address)
  if (request.method === 'POST' && pathname === '/webhooks/midmonth') return await receive(request, response)
  const session = sessionOf(request, response)
  const file = files[pathname]
  if (request.method === 'GET' && file !== undefined) {
    // The component's script and its requests come from the service.
    const policy = `default-src 'self'; script-src 'self' ${MIDMONTH_URL}; connect-src 'self' ${MIDMONTH_URL}`
    response.writeHead(200, { 'content-type': file.type, 'content-security-policy': policy })
    response.end(file.content)
  } else if (request.method === 'GET' && pathname === '/pay') {
    send(response, 200, await payOf(session.rider))
  } else if (request.method === 'GET' && pathname === '/changes') {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' }).write(': open\n\n')
    session.streams.add(response)
    response.on('close', () => session.streams.delete(response))
  } else if (request.method === 'POST' && pathname === '/member-sessions') {
    send(response, 201, await memberSession(session.rider))
  } else if (request.method === 'POST' && pathname === '/quotes') {
    send(response, 201, await quote(session, await json(request)))
  } else if (request.method === 'POST' && pathname === '/withdrawals') {
    send(response, 201, await withdraw(session, await json(request)))
  } else {
    send(response, 404, { message: 'There is no such page' })
  }
}

/** What the page shows: the balance, and the latest withdrawals with their status. */
async function payOf({ memberId, name }: Rider) {
  const balance = await midmonth.members.getBalance(memberId)
  const statuses = ['held', 'submitted', 'paid', 'failed', 'returned', 'cancelled'] as const
  const { withdrawals } = await midmonth.withdrawals.list({ memberId, statuses: [...statuses], take: 5 })
  return { name, balance, withdrawals }
}

/** A token with which the component, on this origin only, acts for the rider. The API key stays here. */
async function memberSession({ memberId }: Rider) {
  const { token } = await midmonth.memberSessions.create({ memberId, scope: 'withdraw', origin: address })
  return { token }
}

/** Asks what a withdrawal would cost. The quote is good for 15 minutes, and nothing moves. */
async function quote({ rider, quotes }: Session, { amount }: { amount?: unknown }) {
  const { available } = await midmonth.members.getBalance(rider.memberId)
  const wanted = money(String(amount), available.currency)
  const intent = await midmonth.withdrawals.createIntent({ memberId: rider.memberId, amount: wanted })
  quotes.set(intent.withdrawalIntentId, intent.withdrawalIntentId)
  return intent
}

/** Moves the money. The key makes a second click, or a second request, the same withdrawal. */
async function withdraw({ quotes }: Session, { quoteId }: { quoteId?: unknown }) {
  // Only a quote of this rider: the API key may complete those of all.
  const withdrawalIntentId = quotes.get(String(quoteId))
  if (withdrawalIntentId === undefined) throw new RangeError('Ask for a new quote first')
  return await midmonth.withdrawals.complete(
    { withdrawalIntentId },
    { idempotencyKey: `complete-${withdrawalIntentId}` },
  )
}

/** Receives webhooks. Each may arrive twice, and in any order, so the page is told to read the state again. */
async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const event = await midmonth.webhooks.unwrap(await bytes(request), request.headers, webhook.secret)
  response.writeHead(204).end()
  if (seenEvents.has(event.id)) return
  seenEvents.add(event.id)
  if (!('memberId' in event.data)) return
  for (const { rider, streams } of sessions.values()) {
    if (rider.memberId !== event.data.memberId) continue
    for (const stream of streams) stream.write(`data: ${event.type}\n\n`)
  }
}

function embedded(): Buffer {
  return Buffer.from(page('embedded.html').toString().replaceAll('MIDMONTH_URL', MIDMONTH_URL))
}

async function riderByEmail(email: string): Promise<Rider> {
  const { members } = await midmonth.members.list({ emails: [email] })
  const [member] = members
  if (member === undefined) throw new Error(`The sandbox has no member ${email}; set RIDER to one's address`)
  return { memberId: member.memberId, name: `${member.firstName} ${member.lastName}` }
}

/** The session of a browser by its cookie; a new one if it has none. */
function sessionOf(request: IncomingMessage, response: ServerResponse): Session {
  const known = sessions.get(/(?:^|; )session=([\w-]+)/.exec(request.headers.cookie ?? '')?.[1] ?? '')
  if (known !== undefined) return known
  const token = randomUUID()
  const session: Session = { rider, quotes: new Map(), streams: new Set() }
  sessions.set(token, session)
  // SameSite keeps other sites from posting in the rider's name.
  response.setHeader('set-cookie', `session=${token}; HttpOnly; SameSite=Strict; Path=/`)
  return session
}

function fail(response: ServerResponse, error: unknown): void {
  if (error instanceof ApiError && error.status < 500) {
    // Every issue has a code and a sentence that a person can read.
    send(response, error.status, { code: error.code, message: error.issues.map(({ message }) => message).join(' ') })
  } else if (error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError) {
    send(response, 400, { message: error.message })
  } else if (error instanceof WebhookVerificationError) {
    send(response, 401, { message: error.message })
  } else {
    console.error(error)
    send(response, 503, { message: 'Your pay cannot be reached right now. Try again in a minute.' })
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  if (response.headersSent) return void response.destroy()
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
  response.end(JSON.stringify(body))
}

async function json(request: IncomingMessage): Promise<Record<string, unknown>> {
  if (!request.headers['content-type']?.startsWith('application/json')) throw new TypeError('Send JSON')
  return JSON.parse((await bytes(request)).toString())
}

async function bytes(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request) {
    length += chunk.length
    if (length > 100_000) throw new RangeError('The body is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Takes the endpoint away, since the next start has another secret. */
async function stop(): Promise<void> {
  server.close()
  server.closeAllConnections()
  await midmonth.webhooks.delete(webhook.id)
}
