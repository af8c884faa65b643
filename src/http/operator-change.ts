import type { FastifyRequest } from 'fastify'
import * as auditLog from '../audit-log/audit-log.ts'
import type { Reader, Tx } from '../database/database.ts'
import { readOffsetMs } from '../partners/clocks.ts'
import type { Operator } from '../partners/operator-keys.ts'
import { actorOf } from './admission/actor.ts'

/** The operator of a request to a route that is for operators. */
export function operatorOf({ operator }: FastifyRequest): Operator {
  if (operator === undefined) throw new Error('The route is not for operators')
  return operator
}

/** The time of a call by the partner's clock, which a partner of a sandbox can have moved ahead of real time. */
export async function partnerNow(
  reader: Reader,
  { receivedAt }: { receivedAt: Date },
  partnerId: string,
): Promise<Date> {
  return new Date(receivedAt.getTime() + (await readOffsetMs(reader, partnerId)))
}

/** Writes an operator's change to the audit log, in the same transaction. @param partnerId null if it concerns no partner */
export async function recordOperatorChange(
  tx: Tx,
  request: FastifyRequest,
  { partnerId, change, now }: { partnerId: string | null; change: auditLog.Change; now: Date },
): Promise<void> {
  await auditLog.record(tx, { partnerId, actor: actorOf(request), change, now })
}
