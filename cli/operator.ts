import type { Actor } from '../src/audit-log/audit-log.ts'
import { systemClock } from '../src/clock.ts'
import type { Settings } from '../src/config.ts'
import type { Tx } from '../src/database/database.ts'
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
import { PrintingCommand } from './command.ts'
import { operatorKeyCommand } from './operator-key.ts'
import { takeMax } from './paging.ts'
import { countOf, print, printResult } from './print.ts'
import { withDatabase, withTransaction } from './with-database.ts'

export const operatorCommand = new PrintingCommand('operator')
  .description('Manage the people who sign in to the console, and operator keys. See docs/operations/users.md.')
  .addCommand(operatorKeyCommand)

operatorCommand
  .command('create')
  .description(
    'Create an operator, who may do everything in the console. Asks for a password, or prints an invitation.',
  )
  .argument('<email>', 'the address that the operator signs in with')
  .option('--name <name>', 'the name of the person', 'Operator')
  .option('--invite', 'print a link with which the person chooses a name and a password')
  .examples('operator create ada@example.com --name "Ada Lovelace"', 'operator create ada@example.com --invite')
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
  .examples('operator list')
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
  .examples('operator link', 'operator link ada@example.com')
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

changeOfUser('sign-out', 'End all sessions of a user.', async (tx, { email, userId, now }) => {
  const count = await endSessions(tx, { userId })
  const change = { action: 'user.end_session', resourceId: userId, details: {} } as const
  if (count > 0) await recordChange(tx, { partnerId: null, change, now })
  return { value: { count }, text: `Ended ${countOf(count, 'session')} of ${email}.` }
})

changeOfUser(
  'remove-totp',
  'Remove the second factor of a user who has lost it and the recovery codes.',
  async (tx, { email, ...by }) => {
    const isRemoved = await removeTotp(tx, by)
    const text = isRemoved ? `Removed the second factor of ${email}.` : `${email} has no second factor.`
    return { value: { isRemoved }, text }
  },
)

changeOfUser(
  'unlink',
  'Unlink a user from the OpenID provider, and end all sessions. The next sign-in there links the user anew.',
  async (tx, { email, ...by }) => {
    const isUnlinked = await identities.unlink(tx, by)
    const text = isUnlinked
      ? `Unlinked ${email} from the OpenID provider.`
      : `${email} is not linked to the OpenID provider.`
    return { value: { isUnlinked }, text }
  },
)

changeOfUser(
  'disable',
  'Disable a user, and end all sessions. The last operator cannot be disabled.',
  async (tx, { email, ...by }) => {
    await setUser(tx, { ...by, isDisabled: true })
    return { value: { state: 'disabled' }, text: `Disabled ${email}.` }
  },
)

type ChangeOfUser = { email: string; userId: string; actor: Actor; now: Date }

/** Adds a command that changes the user with an address, and says what it has done. */
function changeOfUser(
  name: string,
  description: string,
  change: (tx: Tx, by: ChangeOfUser) => Promise<{ value: object; text: string }>,
): void {
  operatorCommand
    .command(name)
    .description(description)
    .argument('<email>', 'the address of the user')
    .examples(`operator ${name} ada@example.com`)
    .action(async (email: string, { json }: { json?: true }) => {
      const { value, text } = await withTransaction(async tx => {
        const { id: userId } = await requireByEmail(tx, email)
        return await change(tx, { email, userId, actor: operator(), now: systemClock() })
      })
      printResult({ json }, { value: { email, ...value }, text: () => text })
    })
}

async function requireByEmail(tx: Tx, email: string): Promise<User> {
  const user = await findByEmail(tx, email)
  if (user === undefined) throw new Error(`There is no user ${email}; operator list shows them`)
  return user
}

function addressOf(settings: Settings): string {
  return settings.MIDMONTH_PUBLIC_URL || settings.MIDMONTH_URL
}
