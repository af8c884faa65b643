import { Type } from 'typebox'
import { named, operationsOn } from '../http/operation.ts'
import { conflict, problem } from '../kernel/errors.ts'
import { namedObject, nullable, strict } from '../kernel/schemas.ts'
import { GivenInstant, Instant, parseInstant } from '../kernel/time.ts'
import { type ComparedApi, listUncompared } from '../payouts/books/comparison.ts'
import { endRestore, findRestore, listUnsent, recordRestore } from '../payouts/books/restores.ts'
import { fileRailsOf } from '../payouts/channels/rail.ts'
import * as withdrawals from '../withdrawals/withdrawals.ts'
import type { InstallationContext } from './operation-context.ts'
import { line } from './partner-schema.ts'

const operation = operationsOn<InstallationContext>().operationWith({ tag: 'Payouts', isForOperators: true })

const Restore = namedObject('Restore', {
  detectedAt: Instant,
  how: Type.String({ description: 'What was detected.' }),
  recoveredUntil: nullable(Instant, 'The last commit that the backup has, if it is known.'),
})

const declareRestore = operation({
  route: 'POST /operator/v1/restores',
  summary: 'Declare that the database was restored',
  description:
    'Nothing is sent through any rail until payouts are resumed. The program detects most restores itself when it starts; call this in the procedure of every restore by another tool.',
  body: Type.Object(
    { recoveredUntil: Type.Optional(GivenInstant) },
    { title: 'NewRestore', description: '`recoveredUntil` is the last commit that the backup has.', ...strict },
  ),
  success: { status: 201, description: 'The restore.', schema: Restore },
  async write(tx, { body, receivedAt: now }) {
    const recoveredUntil =
      body.recoveredUntil === undefined ? null : parseInstant(body.recoveredUntil, { decimals: 'down' })
    const restore = { how: 'An operator declared that the database was restored', recoveredUntil }
    await recordRestore(tx, { ...restore, now })
    const details = { recoveredUntil: recoveredUntil?.toISOString() ?? null }
    const audit = { action: 'backup.restore', details, partnerId: null, now } as const
    return { body: { ...restore, detectedAt: now }, resourceId: now.toISOString(), audit }
  },
})

const resumePayouts = operation({
  route: 'POST /operator/v1/payouts/resume',
  summary: 'Resume payouts after a restore',
  description:
    'Declares that what the banks paid was compared with the restored books. Refused while a payout exception that was opened since the restore is open, and, unless `withoutStatements` is true, while the statements of a bank that sends them do not cover each banking day from the backup to the restore, or an API has not listed its payments since.',
  body: Type.Object(
    {
      note: line(500, { description: 'How the banks were compared.', examples: ['checked the portal with the bank'] }),
      withoutStatements: Type.Optional(Type.Boolean()),
    },
    { title: 'Resumption', ...strict },
  ),
  success: { description: 'The restore.', schema: Restore },
  problems: ['Conflict', 'NotFound'],
  async write(tx, { operator: { person }, body: { note, withoutStatements = false }, receivedAt: now, context }) {
    const restore = await findRestore(tx)
    if (restore === undefined) throw problem('NotFound', 'Payouts are not stopped: the database was not restored')
    const rails = fileRailsOf(context.rails)
    const apis: ComparedApi[] = []
    for (const { name, listedUntil } of context.rails)
      if (listedUntil !== undefined) apis.push({ name, listedUntil: await listedUntil(tx) })
    const uncompared = await listUncompared(tx, { rails, apis, restore, needsStatements: !withoutStatements })
    if (uncompared.length > 0) throw conflict(uncompared.join('; '))
    await endRestore(tx, { person, now })
    // Some rails poll once a day.
    for (const each of await listUnsent(tx)) await withdrawals.bringForward(tx, { ...each, now })
    const audit = { action: 'rail.resume', details: { person, note, withoutStatements }, partnerId: null, now } as const
    return { body: restore, resourceId: 'all', audit }
  },
})

export const restoreOperations = named({ declareRestore, resumePayouts })
