import { Command, InvalidArgumentError, Option } from 'commander'
import { systemClock } from '../src/main.ts'
import { createKey, listKeys, revokeKey, type Scope, scopes, stateOf } from '../src/partners/api-keys.ts'
import { findState } from '../src/partners/partners.ts'
import { recordChange } from './actor.ts'
import { whole } from './arguments.ts'
import { examples } from './help.ts'
import { takeMax } from './paging.ts'
import { partnerNow } from './partner-clock.ts'
import { print, printResult } from './print.ts'
import { writeLine } from './terminal.ts'
import { withDatabase, withTransaction } from './with-database.ts'

export const keyCommand = new Command('key')

keyCommand
  .command('create')
  .description('Create an API key. It is shown only once.')
  .argument('<partner>', 'the partner’s id, par_…')
  .addOption(
    new Option('--scopes <list>', 'what the key may do, separated by commas')
      .argParser(readScopes)
      .default([...scopes], scopes.join(',')),
  )
  .option('--expires-in-days <n>', 'expire the key after this many days', whole({ min: 1, max: 36_500 }))
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    examples('key create par_…', 'key create par_… --scopes members:read,pay:read --expires-in-days 90'),
  )
  .action(async (partnerId: string, { scopes: granted, expiresInDays, json }) => {
    const { key, secret } = await withTransaction(async (tx, settings) => {
      await findState(tx, partnerId)
      const now = await partnerNow(tx, partnerId)
      const expiresAt = expiresInDays === undefined ? null : new Date(now.getTime() + expiresInDays * 86_400_000)
      const made = await createKey(tx, { partnerId, mode: settings.MIDMONTH_MODE, scopes: granted, expiresAt, now })
      const { id, hint } = made.key
      const details = { key: hint, scopes: granted, expiresAt: expiresAt?.toISOString() ?? null }
      await recordChange(tx, { partnerId, change: { action: 'key.create', resourceId: id, details }, now })
      return made
    })
    print({ id: key.id, key: secret, expires: key.expiresAt?.toISOString() ?? null }, { json })
    if (!json) writeLine('\nSave the key now. It is stored only as a hash and cannot be shown again.')
  })

keyCommand
  .command('list')
  .description(`List a partner’s keys, newest first, including expired and revoked ones, ${takeMax} at most.`)
  .argument('<partner>', 'the partner’s id, par_…')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('key list par_…'))
  .action(async (partnerId: string, { json }) => {
    const { keys, now } = await withDatabase(async db => {
      await findState(db, partnerId)
      return { keys: await listKeys(db, { partnerId, take: takeMax }), now: await partnerNow(db, partnerId) }
    })
    print(
      keys.map(key => ({
        id: key.id,
        key: key.hint,
        state: stateOf(key, now),
        scopes: key.scopes.join(','),
        created: key.createdAt.toISOString(),
        expires: key.expiresAt?.toISOString() ?? null,
        revoked: key.revokedAt?.toISOString() ?? null,
        lastUsed: key.lastUsedAt?.toISOString() ?? null,
      })),
      { json },
    )
  })

keyCommand
  .command('revoke')
  .description('Revoke a key. It stops working within a second.')
  .argument('<key>', 'the key’s id, key_…')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('key revoke key_…'))
  .action(async (keyId: string, options) => {
    const now = systemClock()
    // Skips the mode check: a leaked key must be revocable whatever MIDMONTH_MODE says.
    const revoked = await withDatabase(db =>
      db.transaction().execute(async tx => {
        const found = await revokeKey(tx, { keyId, now })
        if (found === undefined) throw new Error(`There is no key ${keyId}; run midmonth key list to see the ids`)
        const { partnerId, hint, isRepeated } = found
        const change = { action: 'key.revoke', resourceId: keyId, details: { key: hint } } as const
        if (!isRepeated) await recordChange(tx, { partnerId, change, now })
        return found
      }),
    )
    const { partnerId, revokedAt, isRepeated } = revoked
    printResult(options, {
      value: { id: keyId, partnerId, revoked: revokedAt, hasChanged: !isRepeated },
      text: () => (isRepeated ? `${keyId} was already revoked on ${revokedAt.toISOString()}.` : `Revoked ${keyId}.`),
    })
  })

function readScopes(text: string): Scope[] {
  const given = text.split(',')
  const unknown = given.filter(scope => !scopes.includes(scope as Scope))
  if (unknown.length > 0) throw new InvalidArgumentError(`Choose from ${scopes.join(', ')}.`)
  return given as Scope[]
}
