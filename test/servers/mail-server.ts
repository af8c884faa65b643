import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'

export type MailServer = {
  url: string
  /** The messages as they were sent, with their envelopes. */
  received: { from: string; to: string; message: string }[]
  /** From now on, each recipient is answered with this line instead. */
  refuseWith(line: string | undefined): void
  stop(): Promise<void>
}

/** A mail server that offers STARTTLS without a certificate to trust, accepts messages without TLS, or refuses them as told. Source: RFC 5321 */
export async function startMailServer(): Promise<MailServer> {
  const received: MailServer['received'] = []
  const sockets = new Set<Socket>()
  let refusal: string | undefined
  const server = createServer(async socket => {
    sockets.add(socket.on('error', () => undefined))
    const say = (line: string) => socket.write(`${line}\r\n`)
    let envelope = { from: '', to: '' }
    let message: string[] | undefined
    say('220 mail.test ESMTP')
    for await (const line of createInterface({ input: socket })) {
      if (message !== undefined) {
        if (line !== '.') message.push(line)
        else {
          received.push({ ...envelope, message: message.join('\n') })
          message = undefined
          say('250 accepted')
        }
      } else if (/^EHLO/i.test(line)) say('250-mail.test\r\n250 STARTTLS')
      else if (/^STARTTLS/i.test(line)) {
        say('220 go ahead')
        socket.end('not a handshake')
      } else if (/^MAIL FROM:/i.test(line)) {
        envelope = { from: /<(.*)>/.exec(line)?.[1] ?? '', to: '' }
        say('250 ok')
      } else if (/^RCPT TO:/i.test(line)) {
        envelope.to = /<(.*)>/.exec(line)?.[1] ?? ''
        say(refusal ?? '250 ok')
      } else if (/^DATA/i.test(line)) {
        message = []
        say('354 go on')
      } else if (/^QUIT/i.test(line)) {
        say('221 bye')
        socket.end()
      } else say('502 unknown command')
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    refuseWith(line) {
      refusal = line
    },
    async stop() {
      for (const socket of sockets) socket.destroy()
      const closed = once(server, 'close')
      server.close()
      await closed
    },
  }
}
