import { type Settings, SettingsProblem } from '../config.ts'

/** How operators are told what needs attention. Without a webhook and an e-mail address, they are not. */
export type NoticeSettings = {
  mode: Settings['MIDMONTH_MODE']
  /** Where the service is, so that the reader knows which one it is. Empty if it is not set. */
  publicUrl: string
  reminderMs: number
  webhook: { url: string; secret: string } | undefined
  email: { server: string; from: string; to: string } | undefined
}

/** @throws SettingsProblem if a setting lacks the other that it needs */
export function noticeSettingsOf(settings: Settings): NoticeSettings {
  const { MIDMONTH_NOTIFY_WEBHOOK_URL: url, MIDMONTH_NOTIFY_WEBHOOK_SECRET: secret } = settings
  const { MIDMONTH_NOTIFY_EMAIL: to, MIDMONTH_NOTIFY_EMAIL_FROM: from, MIDMONTH_SMTP_URL: server } = settings
  if (url !== '' && secret === '')
    throw new SettingsProblem(
      'MIDMONTH_NOTIFY_WEBHOOK_URL requires MIDMONTH_NOTIFY_WEBHOOK_SECRET, which signs the requests',
    )
  if (to !== '' && server === '')
    throw new SettingsProblem(
      'MIDMONTH_NOTIFY_EMAIL requires MIDMONTH_SMTP_URL, the mail server that sends the messages',
    )
  return {
    mode: settings.MIDMONTH_MODE,
    publicUrl: settings.MIDMONTH_PUBLIC_URL,
    reminderMs: settings.MIDMONTH_NOTIFY_REMINDER_HOURS * 3_600_000,
    webhook: url === '' ? undefined : { url, secret },
    email: to === '' ? undefined : { server, from: from || to, to },
  }
}
