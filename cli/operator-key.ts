import { systemClock } from '../src/clock.ts'
import { stateOf } from '../src/partners/api-keys.ts'
import { createOperatorKey, listOperatorKeys, revokeOperatorKey } from '../src/partners/operator-keys.ts'
import { operatorName, recordChange } from './actor.ts'
import { name, whole } from './arguments.ts'
import { PrintingCommand } from './command.ts'
import { takeMax } from './paging.ts'
import { print, printResult } from './print.ts'
import { writeLine } from './terminal.ts'
import { withDatabase, withTransaction } from './with-database.ts'

export const operatorKeyCommand = new PrintingCommand('key').description(
  'Manage operator keys, which programs of operators use for /operator/v1.',
)

operatorKeyCommand
  .command('create')
  .description(
    'Create an operator key. The key may do everything that operators may, except approve payments, and is shown only once.',
  )
  .argument('<name>', 'what the key is for, for example "nightly reports"', name({ lengthMax: 100 }))
  .option('--expires-in-days <n>', 'expire the key after this many days', whole({ min: 1, max: 36_500 }))
  .examples('operator key create "nightly reports" --expires-in-days 90')
  .action(async (keyName: string, { expiresInDays, json }: { expiresInDays?: number; json?: boolean }) => {
    const now = systemClock()
    const expiresAt = expiresInDays === undefined ? null : new Date(now.getTime() + expiresInDays * 86_400_000)
    const { key, secret } = await withTransaction(async tx => {
      const made = await createOperatorKey(tx, { name: keyName, createdBy: operatorName(), expiresAt, now })
      const details = { name: keyName, key: made.key.hint, expiresAt: expiresAt?.toISOString() ?? null }
      const change = { action: 'operator_key.create', resourceId: made.key.id, details } as const
      await recordChange(tx, { partnerId: null, change, now })
      return made
    })
    print({ id: key.id, key: secret, expires: key.expiresAt?.toISOString() ?? null }, json ? { json } : {})
    if (!json) writeLine('\nSave the key now. It is stored only as a hash and cannot be shown again.')
  })

operatorKeyCommand
  .command('list')
  .description(`List operator keys, newest first, including expired and revoked ones, ${takeMax} at most.`)
  .examples('operator key list')
  .action(async ({ json }: { json?: boolean }) => {
    const keys = await withDatabase(db => listOperatorKeys(db, { take: takeMax }))
    const now = systemClock()
    print(
      keys.map(key => ({
        id: key.id,
        name: key.name,
        key: key.hint,
        state: stateOf(key, now),
        'created by': key.createdBy,
        created: key.createdAt.toISOString(),
        expires: key.expiresAt?.toISOString() ?? null,
        revoked: key.revokedAt?.toISOString() ?? null,
        'last used': key.lastUsedAt?.toISOString() ?? null,
      })),
      json ? { json } : {},
    )
  })

operatorKeyCommand
  .command('revoke')
  .description('Revoke an operator key. It is refused from the next request.')
  .argument('<key>', 'the key’s id, opk_…')
  .examples('operator key revoke opk_…')
  .action(async (keyId: string, options: { json?: boolean }) => {
    const now = systemClock()
    // Skips the mode check: a leaked key must be revocable whatever MIDMONTH_MODE says.
    const revoked = await withDatabase(db =>
      db.transaction().execute(async tx => {
        const found = await revokeOperatorKey(tx, { keyId, revokedBy: operatorName(), now })
        const change = { action: 'operator_key.revoke', resourceId: keyId, details: { key: found?.hint } } as const
        if (found?.isRepeated === false) await recordChange(tx, { partnerId: null, change, now })
        return found
      }),
    )
    if (revoked === undefined)
      throw new Error(`There is no operator key ${keyId}; run midmonth operator key list to see the ids`)
    const { revokedAt, isRepeated } = revoked
    printResult(options, {
      value: { id: keyId, revoked: revokedAt, hasChanged: !isRepeated },
      text: () => (isRepeated ? `${keyId} was already revoked on ${revokedAt.toISOString()}.` : `Revoked ${keyId}.`),
    })
  })
