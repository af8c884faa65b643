import type { Transporter } from 'nodemailer'
import { countOf } from '../kernel/text.ts'
import { keyOf, sign } from '../webhooks/signing.ts'
import type { ChannelName, Message } from './notices.ts'
import type { NoticeSettings } from './settings.ts'

const limits = { webhookMsMax: 15_000, smtpMsMax: 30_000 }

/** A way to tell the operator. @property send throws an error whose `code` says what failed, without addresses */
export type NoticeChannel = { name: ChannelName; send(message: Message): Promise<void> }

/**
 * The channels that are set up.
 * @param clockMs the real time, in milliseconds since 1970: receivers compare the signed timestamp with their clocks
 */
export function openNoticeChannels(settings: NoticeSettings, { clockMs }: { clockMs: () => number }): NoticeChannel[] {
  const { webhook, email } = settings
  return [
    ...(webhook === undefined ? [] : [openWebhook(webhook, { about: settings, clockMs })]),
    ...(email === undefined ? [] : [openEmail(settings, email)]),
  ]
}

/** Why a message did not arrive, for operators: a status or a code, never an address. */
export function faultOf(error: unknown): string {
  const { responseCode, code, name, cause } = error as {
    responseCode?: number
    code?: string | number
    name?: string
    cause?: { code?: string }
  }
  if (name === 'TimeoutError') return 'timeout'
  return String(cause?.code ?? responseCode ?? code ?? name)
}

/** Signed like the webhooks of partners. The operator chose the address, so it may be in the operator's own network. */
function openWebhook(
  { url, secret }: NonNullable<NoticeSettings['webhook']>,
  { about, clockMs }: { about: NoticeSettings; clockMs: () => number },
): NoticeChannel {
  const keys = [keyOf(secret)]
  return {
    name: 'webhook',
    async send({ id, at, ...changes }) {
      const { mode, publicUrl } = about
      const body = JSON.stringify({
        type: 'status.changed',
        timestamp: at,
        data: { mode, url: publicUrl, state: stateOf(changes), ...changes },
      })
      const sentAt = Math.floor(clockMs() / 1_000)
      const headers = {
        'content-type': 'application/json',
        'user-agent': 'midmonth',
        'webhook-id': id,
        'webhook-timestamp': String(sentAt),
        'webhook-signature': sign(keys, { id, sentAt, body }),
      }
      const signal = AbortSignal.timeout(limits.webhookMsMax)
      const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal })
      await response.body?.cancel()
      if (!response.ok) throw Object.assign(new Error('The receiver refused the message'), { code: response.status })
    },
  }
}

function openEmail(about: NoticeSettings, { server, from, to }: NonNullable<NoticeSettings['email']>): NoticeChannel {
  const { hostname, port, protocol, username, password } = new URL(server)
  const isTls = protocol === 'smtps:'
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(hostname)
  let transport: Transporter | undefined
  // Imported late: most workers never send one.
  const open = async () => {
    const { createTransport } = await import('nodemailer')
    return createTransport({
      host: hostname.replace(/^\[(.*)\]$/, '$1'),
      port: Number(port) || (isTls ? 465 : 587),
      secure: isTls,
      // A password or a message must not cross a network in plain form.
      requireTLS: !isTls && !isLocal,
      // A local server's certificate is often self-signed, as Debian's postfix's is.
      ignoreTLS: isLocal,
      ...(username === '' ? {} : { auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) } }),
      ...{ connectionTimeout: limits.smtpMsMax, greetingTimeout: limits.smtpMsMax, socketTimeout: limits.smtpMsMax },
      ...{ disableFileAccess: true, disableUrlAccess: true },
    })
  }
  return {
    name: 'email',
    async send(message) {
      transport ??= await open()
      const domain = from.split('@').at(-1)
      await transport.sendMail({
        ...{ from, to, subject: subjectOf(message), text: textOf(message, about) },
        messageId: `<${message.id}@${domain}>`,
        headers: { 'auto-submitted': 'auto-generated' },
      })
    },
  }
}

function stateOf({ open }: Pick<Message, 'open'>): 'fine' | 'needsAttention' {
  return open.length === 0 ? 'fine' : 'needsAttention'
}

function subjectOf({ open, isReminder }: Message): string {
  if (open.length === 0) return 'Midmonth: all is well again'
  const verb = open.length === 1 ? 'needs' : 'need'
  return `Midmonth: ${countOf(open.length, 'thing')} ${isReminder ? 'still ' : ''}${verb} attention`
}

function textOf({ began, ended, open }: Message, { mode, publicUrl }: NoticeSettings): string {
  const list = (title: string, all: Message['open']) =>
    all.length === 0 ? [] : [title, ...all.map(({ notice, since }) => `- ${notice} (since ${since})`), '']
  const beganKinds = new Set(began)
  return [
    ...list('New:', began),
    ...list('Over:', ended),
    ...list(
      'Still:',
      open.filter(each => !beganKinds.has(each)),
    ),
    `From the ${mode} installation${publicUrl === '' ? '' : ` at ${publicUrl}`}. midmonth status has the details.`,
  ].join('\n')
}
