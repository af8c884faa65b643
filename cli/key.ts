import { InvalidArgumentError, Option } from 'commander'
import type { ApiKeyId, PartnerId } from '../packages/console/src/generated/operator.ts'
import { type Scope, scopes } from '../src/partners/api-keys.ts'
import { whole } from './arguments.ts'
import { addServerOptions, allOf, OperatorCommand, withOperators } from './operator-client.ts'
import { takeMax } from './paging.ts'
import { printResult, table } from './print.ts'

const operations = () => import('../src/operators/key-operations.ts')

export const keyCommand = new OperatorCommand('key', operations).description(
  'Manage API keys. To rotate one, create a new key, switch to it, then revoke the old one.',
)

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
  .examples('key create par_…', 'key create par_… --scopes members:read,pay:read --expires-in-days 90')
  .prints(
    async (api, partnerId: PartnerId, { scopes: granted, expiresInDays }) => {
      const made = await api.createApiKey(partnerId, { scopes: granted, expiresInDays })
      const { id, secret } = made
      // A repeat after a lost response: the server does not keep the secret.
      if (secret === null)
        throw new Error(
          `The key ${id} was created, but the response with its secret was lost; run midmonth key revoke ${id}, and create another`,
        )
      return { ...made, secret }
    },
    ({ id, secret: key, expiresAt: expires }) =>
      `${table([{ id, key, expires }])}\n\nSave the key now. It is stored only as a hash and cannot be shown again.`,
  )

keyCommand
  .command('list')
  .description('List a partner’s keys, newest first, including expired and revoked ones.')
  .argument('<partner>', 'the partner’s id, par_…')
  .examples('key list par_…')
  .prints(
    (api, partnerId: PartnerId) => allOf(api.listApiKeys(partnerId, { take: takeMax })),
    keys =>
      table(
        keys.map(({ id, hint, state, scopes: granted, createdAt, expiresAt, revokedAt, lastUsedAt }) => ({
          id,
          key: hint,
          state,
          scopes: granted.join(','),
          created: createdAt,
          expires: expiresAt,
          revoked: revokedAt,
          lastUsed: lastUsedAt,
        })),
      ),
  )

keyCommand
  .command('revoke')
  .description('Revoke a key. It stops working within a second.')
  .argument('<key>', 'the key’s id, key_…')
  .examples('key revoke key_…')
  .action(async (keyId: ApiKeyId, options) => {
    // A leaked key must be revocable whatever MIDMONTH_MODE says.
    const { before, after } = await withOperators({ ...options, mayBeOtherMode: true }, operations, async api => {
      const { partnerId, ...found } = await api.getApiKey(keyId)
      return { before: found, after: await api.revokeApiKey(partnerId, keyId) }
    })
    const { revokedAt } = before
    printResult(options, {
      value: after,
      text: () => (revokedAt === null ? `Revoked ${keyId}.` : `${keyId} was already revoked on ${revokedAt}.`),
    })
  })

addServerOptions(keyCommand)

function readScopes(text: string): Scope[] {
  const given = text.split(',')
  const unknown = given.filter(scope => !scopes.includes(scope as Scope))
  if (unknown.length > 0) throw new InvalidArgumentError(`Choose from ${scopes.join(', ')}.`)
  return given as Scope[]
}
