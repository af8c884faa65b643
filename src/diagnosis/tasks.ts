import { faultOf, type NoticeChannel } from '../notices/channels.ts'
import * as notices from '../notices/notices.ts'
import type { Tasks } from '../worker/task.ts'
import { readStatus } from './status.ts'
import type { Asked } from './status-facts.ts'

/**
 * Tells the operator what needs attention, once when it begins, once when it is over, and again while it lasts. A message that was sent
 * by a worker that was killed before it could record so is sent again, with the same id.
 */
export function noticeTasks(
  channels: readonly NoticeChannel[],
  { reminderMs, ...asked }: Omit<Asked, 'now'> & { reminderMs: number },
) {
  return {
    async 'notify-operators'({ db, log, now }) {
      await notices.forgetOthers(db, { channels: channels.map(({ name }) => name), now: now() })
      if (channels.length === 0) return
      const { attention } = await readStatus(db, { ...asked, now: now() })
      for (const { name: channel, send } of channels) {
        // A failing channel cannot report its own failure.
        const concerns = attention
          .filter(({ kind, subject }) => kind !== 'failingNotices' || subject !== channel)
          .map(({ kind, subject, redacted }) => ({ kind, subject, notice: redacted }))
        const claim = { channel, concerns, reminderMs, now: now() }
        const message = await db.transaction().execute(tx => notices.claim(tx, claim))
        if (message === undefined) continue
        try {
          await send(message)
          await notices.recordSent(db, { channel, message, now: now() })
        } catch (error) {
          const fault = faultOf(error)
          log.warn({ channel, code: fault }, 'the operator was not notified; retrying')
          await notices.recordFailed(db, { channel, message, fault, now: now() })
        }
      }
    },
  } satisfies Partial<Tasks>
}
