import { Type } from 'typebox'
import { strictObject } from '../../kernel/schemas.ts'
import { logoBytesMax, removeLogo as remove, saveLogo } from '../../partners/logos.ts'
import { consoleOperation, named } from '../operation.ts'

// A logo up to twice the limit gets a refusal that names the limit.
const dataLengthMax = Math.ceil((2 * logoBytesMax) / 3) * 4

const data = Type.String({
  pattern: '^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$',
  minLength: 4,
  maxLength: dataLengthMax,
})

/** Idempotent, so the operation needs no idempotency key. */
const setLogo = consoleOperation({
  route: 'PUT /console/v1/logo',
  console: 'user',
  roles: ['admin'],
  bodyBytesMax: dataLengthMax + 1_024,
  body: strictObject({ data }),
  async write(tx, { partner: { id: partnerId }, body, receivedAt: now }) {
    const bytes = Buffer.from(body.data, 'base64')
    const { mediaType } = await saveLogo(tx, { partnerId, bytes, now })
    const audit = { action: 'partner.set_logo', details: { mediaType, bytes: bytes.length } } as const
    return { body: { mediaType }, resourceId: partnerId, audit }
  },
})

const removeLogo = consoleOperation({
  route: 'DELETE /console/v1/logo',
  console: 'user',
  roles: ['admin'],
  async write(tx, { partner: { id: partnerId } }) {
    const removed = await remove(tx, partnerId)
    const audit = removed ? ({ action: 'partner.remove_logo', details: {} } as const) : undefined
    return { body: { removed }, resourceId: partnerId, audit }
  },
})

/** The logo of a partner, which its admins set; `logoRoutes` shows it. */
export const logoOperations = named({ setLogo, removeLogo })
