import { Command } from 'commander'
import type { Settings } from '../src/config.ts'
import type { Tx } from '../src/database/database.ts'
import { systemClock } from '../src/main.ts'
import { listUsers, setUser } from '../src/users/accounts.ts'
import { createDemoLink } from '../src/users/demo-operator.ts'
import * as identities from '../src/users/identities.ts'
import { invite } from '../src/users/invitations.ts'
import { createPasswordLink, linkTo } from '../src/users/links.ts'
import { hashPassword, requireGoodPassword } from '../src/users/passwords.ts'
import { endSessions } from '../src/users/sessions.ts'
import { remove as removeTotp } from '../src/users/totp.ts'
import { createUser, findByEmail, type User } from '../src/users/users.ts'
import { operator, recordChange } from './actor.ts'
import { askInTurn, isInteractive } from './ask.ts'
import { examples } from './help.ts'
import { operatorKeyCommand } from './operator-key.ts'
import { takeMax } from './paging.ts'
import { countOf, print, printResult } from './print.ts'
import { withDatabase, withTransaction } from './with-database.ts'

export const operatorCommand = new Command('operator').addCommand(operatorKeyCommand)

operatorCommand
  .command('create')
  .description(
    'Create an operator, who may do everything in the console. Asks for a password, or prints an invitation.',
  )
  .argument('<email>', 'the address that the operator signs in with')
  .option('--name <name>', 'the name of the person', 'Operator')
  .option('--invite', 'print a link with which the person chooses a name and a password')
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    examples('operator create ada@example.com --name "Ada Lovelace"', 'operator create ada@example.com --invite'),
  )
  .action(async (email: string, { name, invite: isInvited, json }: { name: string; invite?: true; json?: true }) => {
    if (!/^[^\s@]+@[^\s@]+$/.test(email)) throw new Error(`${email} is not an e-mail address`)
    const now = systemClock()
    if (isInvited || !isInteractive()) {
      const url = await withTransaction(async (tx, settings) => {
        const by = { actor: operator(), now }
        const { token } = await invite(tx, { email, partnerId: null, roles: [], ...by })
        return linkTo('invitation', token, addressOf(settings))
      })
      const text = () => `Send this link to ${email}. It works once, for 7 days:\n\n  ${url}`
      printResult({ json }, { value: { email, url }, text })
      return
    }
    const [password = '', again] = await askInTurn([
      { text: `Password for ${email}: `, isSecret: true },
      { text: 'Again: ', isSecret: true },
    ])
    if (again !== password) throw new Error('The two passwords differ; nothing was done')
    requireGoodPassword(password, { email, name })
    const passwordHash = await hashPassword(password)
    const id = await withTransaction(async tx => {
      if ((await findByEmail(tx, email)) !== undefined)
        throw new Error(`${email} already has a user; an operator can make that user an operator in the console`)
      const user = await createUser(tx, { email, name, isOperator: true, passwordHash, now })
      const details = { by: 'command', isOperator: true }
      const change = { action: 'user.create', resourceId: user.id, details } as const
      await recordChange(tx, { partnerId: null, change, now })
      return user.id
    })
    printResult({ json }, { value: { id, email }, text: () => `${email} can sign in to the console.` })
  })

operatorCommand
  .command('list')
  .description('List the users of the console, newest first.')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('operator list'))
  .action(async ({ json }: { json?: true }) => {
    const users = await withDatabase(db => listUsers(db, { partnerId: null, skip: 0, take: takeMax }))
    print(
      users.map(({ id, email, name, isOperator, isDisabled, hasTotp, hasIdentity, isEmailVerified, createdAt }) => ({
        id,
        email,
        emailVerified: isEmailVerified,
        name,
        operator: isOperator,
        state: isDisabled ? 'disabled' : 'active',
        secondFactor: hasTotp,
        openId: hasIdentity,
        created: createdAt.toISOString(),
      })),
      { json: json === true },
    )
  })

operatorCommand
  .command('link')
  .description(
    'Print a one-time link: with an address, for a lost password; without one, to sign in to a sandbox on this machine.',
  )
  .argument('[email]', 'the address of the user')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('operator link', 'operator link ada@example.com'))
  .action(async (email: string | undefined, { json }: { json?: true }) => {
    const url = await withDatabase(async (db, settings) => {
      if (email !== undefined)
        return await db.transaction().execute(async tx => {
          const { id: userId } = await requireByEmail(tx, email)
          const { token } = await createPasswordLink(tx, { userId, actor: operator(), now: systemClock() })
          return linkTo('password', token, addressOf(settings))
        })
      if (settings.MIDMONTH_MODE === 'live')
        throw new Error('Only a sandbox has a link that signs in; name a user to print a link for a new password')
      return linkTo('sign-in', await createDemoLink(db, systemClock()), addressOf(settings))
    })
    printResult({ json }, { value: { url }, text: () => url })
  })

operatorCommand
  .command('sign-out')
  .description('End all sessions of a user.')
  .argument('<email>', 'the address of the user')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('operator sign-out ada@example.com'))
  .action(async (email: string, { json }: { json?: true }) => {
    const count = await withTransaction(async tx => {
      const { id: userId } = await requireByEmail(tx, email)
      const ended = await endSessions(tx, { userId })
      const change = { action: 'user.end_session', resourceId: userId, details: {} } as const
      if (ended > 0) await recordChange(tx, { partnerId: null, change, now: systemClock() })
      return ended
    })
    printResult({ json }, { value: { email, count }, text: () => `Ended ${countOf(count, 'session')} of ${email}.` })
  })

operatorCommand
  .command('remove-totp')
  .description('Remove the second factor of a user who has lost it and the recovery codes.')
  .argument('<email>', 'the address of the user')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('operator remove-totp ada@example.com'))
  .action(async (email: string, { json }: { json?: true }) => {
    const wasThere = await withTransaction(async tx => {
      const { id: userId } = await requireByEmail(tx, email)
      return await removeTotp(tx, { userId, actor: operator(), now: systemClock() })
    })
    const text = () => (wasThere ? `Removed the second factor of ${email}.` : `${email} has no second factor.`)
    printResult({ json }, { value: { email, isRemoved: wasThere }, text })
  })

operatorCommand
  .command('unlink')
  .description(
    'Unlink a user from the OpenID provider, and end all sessions. The next sign-in there links the user anew.',
  )
  .argument('<email>', 'the address of the user')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('operator unlink ada@example.com'))
  .action(async (email: string, { json }: { json?: true }) => {
    const wasThere = await withTransaction(async tx => {
      const { id: userId } = await requireByEmail(tx, email)
      return await identities.unlink(tx, { userId, actor: operator(), now: systemClock() })
    })
    const text = () =>
      wasThere ? `Unlinked ${email} from the OpenID provider.` : `${email} is not linked to the OpenID provider.`
    printResult({ json }, { value: { email, isUnlinked: wasThere }, text })
  })

operatorCommand
  .command('disable')
  .description('Disable a user, and end all sessions. The last operator cannot be disabled.')
  .argument('<email>', 'the address of the user')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('operator disable ada@example.com'))
  .action(async (email: string, { json }: { json?: true }) => {
    await withTransaction(async tx => {
      const { id: userId } = await requireByEmail(tx, email)
      await setUser(tx, { userId, isDisabled: true, actor: operator(), now: systemClock() })
    })
    printResult({ json }, { value: { email, state: 'disabled' }, text: () => `Disabled ${email}.` })
  })

async function requireByEmail(tx: Tx, email: string): Promise<User> {
  const user = await findByEmail(tx, email)
  if (user === undefined) throw new Error(`There is no user ${email}; operator list shows them`)
  return user
}

function addressOf(settings: Settings): string {
  return settings.MIDMONTH_PUBLIC_URL || settings.MIDMONTH_URL
}
