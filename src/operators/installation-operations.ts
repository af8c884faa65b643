import { Type } from 'typebox'
import { checkRails } from '../diagnosis/finding.ts'
import { readFindingFacts } from '../diagnosis/finding-facts.ts'
import { diagnose } from '../diagnosis/findings.ts'
import { readStatus } from '../diagnosis/status.ts'
import { inspectJournal } from '../erasure/erasure.ts'
import { named, operationsOn } from '../http/operation.ts'
import { problem } from '../kernel/errors.ts'
import { namedObject, strict } from '../kernel/schemas.ts'
import { GivenInstant, Instant, parseInstant } from '../kernel/time.ts'
import { Findings, Status, statusOnWire } from './installation-schema.ts'
import type { InstallationContext } from './operation-context.ts'

const operation = operationsOn<InstallationContext>().operationWith({ tag: 'Operations', isForOperators: true })

const getStatus = operation({
  route: 'GET /operator/v1/status',
  summary: 'Get the health of the service',
  description: 'The state of workers, queue, payouts, floats and partners, and everything that needs attention.',
  success: { description: 'The health.', schema: Status },
  async read(reader, { receivedAt: now, context: { mode, rails, installation } }) {
    const { retention } = installation
    return { body: statusOnWire(await readStatus(reader, { mode, rails, retention, now })) }
  },
})

const getFindings = operation({
  route: 'GET /operator/v1/findings',
  summary: 'Check what is missing before this installation can pay',
  success: { description: 'Everything that is missing, might go wrong or is fine.', schema: Findings },
  async read(reader, { receivedAt: now, context: { mode, rails, installation, erasures } }) {
    const { isEmbedded, keyName, ...settings } = installation
    const findings = diagnose(
      { ...settings, now, mode, rails: await checkRails(rails) },
      {
        isEmbedded,
        // Without its key this process would not have started.
        installationKey: { name: keyName, fault: undefined },
        erasureJournal: erasures && (await inspectJournal(reader, erasures)),
        ...(await readFindingFacts(reader, { ...installation, mode, now })),
      },
    )
    const state = findings.some(({ level }) => level === 'missing') ? 'notReady' : 'ready'
    return { body: { state, at: now, findings } }
  },
})

const recordBackup = operation({
  route: 'POST /operator/v1/backups',
  summary: 'Record a backup',
  description:
    'Records that a backup was taken. Call it from the backup script; the status and the findings warn if the last backup is not recent.',
  body: Type.Object(
    { at: Type.Optional(GivenInstant) },
    { title: 'NewBackup', description: '`at` is when the backup began, by default now.', ...strict },
  ),
  success: {
    status: 201,
    description: 'When the backup began.',
    schema: namedObject('Backup', { at: Instant }),
  },
  async write(_tx, { body, receivedAt: now }) {
    const takenAt = body.at === undefined ? now : parseInstant(body.at, { decimals: 'down' })
    if (takenAt > now)
      throw problem('BodyValidation', 'The instant is in the future; give the time when the backup began', {
        path: 'at',
      })
    const at = takenAt.toISOString()
    const audit = { action: 'backup.record', details: {}, partnerId: null, now } as const
    return { body: { at }, resourceId: at, audit }
  },
})

export const installationOperations = named({ getStatus, getFindings, recordBackup })
