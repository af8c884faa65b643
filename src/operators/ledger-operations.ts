import { Type } from 'typebox'
import { named, operationWith } from '../http/operation.ts'
import { Id } from '../kernel/ids.ts'
import { Count, namedObject, nullable, strict, TextOrNull, wordOf } from '../kernel/schemas.ts'
import { Instant, InstantOrNull } from '../kernel/time.ts'
import * as verifications from '../verification/verifications.ts'

const operation = operationWith({ tag: 'Operations', isForOperators: true })

const LedgerVerification = namedObject('LedgerVerification', {
  id: Id('ledgerVerification'),
  state: wordOf(['waiting', 'running', 'agrees', 'disagrees', 'interrupted'], {
    description: '`interrupted`: the verification could not end; `problem` says why. Request another.',
  }),
  requestedBy: Type.String(),
  requestedAt: Instant,
  startedAt: InstantOrNull,
  endedAt: InstantOrNull,
  checksDone: Count,
  checksTotal: Count,
  checks: nullable(
    Type.Array(
      namedObject('LedgerCheck', {
        name: Type.String(),
        rule: Type.String(),
        disagreement: nullable(
          Type.Object(
            {
              partnerId: Type.String(),
              subject: Type.String(),
              expected: Type.String(),
              found: Type.String(),
            },
            { title: 'Disagreement', description: 'The first row that breaks the rule.', ...strict },
          ),
        ),
      }),
    ),
  ),
  problem: TextOrNull,
})

const verifyLedger = operation({
  route: 'POST /operator/v1/ledger-verifications',
  summary: 'Verify the books',
  description:
    'A worker recomputes every balance from its rows; poll the verification for its progress. `Conflict` while another verification waits or runs.',
  success: { status: 202, description: 'The verification.', schema: LedgerVerification },
  async write(tx, { operator, receivedAt: now }) {
    const verification = await verifications.request(tx, { requestedBy: operator.id, now })
    const audit = { action: 'ledger.verify', details: {}, partnerId: null, now } as const
    return { body: onWire(verification), resourceId: verification.id, audit }
  },
})

const listLedgerVerifications = operation({
  route: 'GET /operator/v1/ledger-verifications',
  summary: 'List verifications of the books',
  description: 'The last 50, newest first.',
  success: {
    description: 'The verifications.',
    schema: namedObject('LedgerVerifications', { verifications: Type.Array(LedgerVerification) }),
  },
  async read(reader) {
    return { body: { verifications: (await verifications.list(reader)).map(onWire) } }
  },
})

const getLedgerVerification = operation({
  route: 'GET /operator/v1/ledger-verifications/:verificationId',
  summary: 'Get a verification of the books',
  success: { description: 'The verification.', schema: LedgerVerification },
  async read(reader, { params: { verificationId } }) {
    return { body: onWire(await verifications.find(reader, verificationId)) }
  },
})

export const ledgerOperations = named({ verifyLedger, listLedgerVerifications, getLedgerVerification })

function onWire(verification: verifications.Verification) {
  return { ...verification, state: stateOf(verification) }
}

function stateOf({ startedAt, endedAt, checks }: verifications.Verification) {
  if (endedAt === null) return startedAt === null ? 'waiting' : 'running'
  if (checks === null) return 'interrupted'
  return checks.every(({ disagreement }) => disagreement === null) ? 'agrees' : 'disagrees'
}
