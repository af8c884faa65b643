import { useState } from 'preact/hooks'
import { act, actUnlessUndone, announce } from '../act.ts'
import { send } from '../api.ts'
import { BadButton, Button, MainButton, TextButton } from '../components/button.tsx'
import { Field, Form, Options } from '../components/form.tsx'
import { DrawerButton, Page } from '../components/layout.tsx'
import { Secret } from '../components/states.tsx'
import { type Column, TablePanel } from '../components/table.tsx'
import { Time } from '../components/values.tsx'
import { inWords } from '../format.ts'
import { reload, useLoaded } from '../query.ts'
import { type Role, session } from '../session.ts'

export type User = {
  id: string
  email: string
  name: string
  roles: Role[]
  isDisabled: boolean
  hasTotp: boolean
  hasIdentity: boolean
  isEmailVerified: boolean
  lastSignInAt: string | null
}
type Invitation = { id: string; email: string; roles: Role[]; expiresAt: string }

const roles: Record<Role, string> = {
  admin: 'Everything, including users',
  payroll: 'Members, imports, pay runs, settlements',
  support: 'Read access, cancelling withdrawals, the request log',
  developer: 'API keys, webhooks, the request log, events',
  viewer: 'Read access to members, pay and withdrawals',
}

/** The e-mail address of a user, marked if it has not been verified. */
export function EmailOf({ user: { email, isEmailVerified } }: { user: User }) {
  return (
    <>
      {email}
      {!isEmailVerified && (
        <>
          {' '}
          <span class="quiet" title="It is not confirmed that the person receives mail at this address">
            not verified
          </span>
        </>
      )}
    </>
  )
}

const columns: Column<User>[] = [
  { title: 'Name', cell: ({ name }) => <b>{name}</b> },
  { title: 'E-mail', cell: user => <EmailOf user={user} />, isMinor: true },
  { title: 'Roles', cell: user => user.roles.map(inWords).join(', ') },
  { title: 'Second factor', cell: ({ hasTotp }) => (hasTotp ? 'Yes' : 'No'), isMinor: true },
  { title: 'Last sign-in', cell: ({ lastSignInAt }) => <Time at={lastSignInAt} />, isMinor: true },
  {
    title: 'Change',
    cell: user =>
      user.id === session.value?.user.id ? (
        <span class="quiet">You</span>
      ) : (
        <DrawerButton look={TextButton} text="Roles" title={user.name}>
          {close => <Change user={user} onDone={close} />}
        </DrawerButton>
      ),
  },
]

/** Lists the users of the partner shown. */
export default function Users() {
  const { value, error, reload } = useLoaded('users', () =>
    send<{ users: User[] }>('GET', '/console/v1/users?take=1000'),
  )
  return (
    <Page
      title="Users"
      actions={
        <DrawerButton look={MainButton} icon="plus" text="Invite a person" pageAction="invite-user">
          {() => <Invite />}
        </DrawerButton>
      }
    >
      <div class="stack">
        <TablePanel
          label="Users"
          columns={columns}
          list={{ rows: value?.users, error, reload }}
          empty="No users yet"
          hint="Invite a person and send them the link yourself."
        />
        <Invitations />
      </div>
    </Page>
  )
}

/** Creates an invitation link, either to the partner shown with chosen roles, or to become an operator of the installation. */
export function Invite({ isOfInstallation = false }: { isOfInstallation?: boolean }) {
  const [link, setLink] = useState<string>()
  if (link !== undefined)
    return (
      <Secret text={link} label="Copy the link">
        Send this link to the person. The link works once, within seven days, and is not shown again.
      </Secret>
    )
  return (
    <Form
      submit="Create the link"
      onSubmit={async ({ email = '', ...chosen }) => {
        const body = isOfInstallation ? { email } : { email, roles: Object.keys(chosen) }
        const path = '/console/v1/invitations'
        setLink((await send<{ url: string }>('POST', path, { body, isOfInstallation })).url)
        reload(invitationsKey(isOfInstallation))
      }}
    >
      <Field label="E-mail address" name="email" type="email" isRequired />
      {isOfInstallation ? (
        <p class="quiet">An operator has all permissions for every partner of this installation.</p>
      ) : (
        <Options label="Roles" name="roles" meanings={roles} isMany checked={['viewer']} />
      )}
    </Form>
  )
}

function invitationsKey(isOfInstallation: boolean): string {
  return isOfInstallation ? 'operator-invitations' : 'invitations'
}

function Change({ user, onDone }: { user: User; onDone: () => void }) {
  const remove = () => {
    onDone()
    actUnlessUndone(
      `${user.name} no longer has access to this partner.`,
      () => send('DELETE', `/console/v1/users/${user.id}`),
      { changes: ['users'] },
    )
  }
  const unlink = async () => {
    const done = await act(
      () => send('DELETE', `/console/v1/users/${user.id}/identity`),
      `${user.name} has been unlinked and signed out`,
      'users',
    )
    if (done) onDone()
  }
  return (
    <>
      <Form
        submit="Save the roles"
        onSubmit={async chosen => {
          await send('PATCH', `/console/v1/users/${user.id}`, { body: { roles: Object.keys(chosen) } })
          announce('Saved; the user must sign in again', 'users')
          onDone()
        }}
      >
        <Options label="Roles" name="roles" meanings={roles} isMany checked={user.roles} />
      </Form>
      <div>
        <BadButton act={remove}>Remove from this partner</BadButton>
      </div>
      {user.hasIdentity && session.value?.isOperator && (
        <section class="stack">
          <p class="quiet">
            Signs in through your organisation. Unlink the user if the organisation has replaced the person’s account or
            given the address to another person. The next person who signs in there with {user.email} then becomes this
            user, with the same roles.
          </p>
          <Button act={unlink}>Unlink from the organisation</Button>
        </section>
      )}
    </>
  )
}

/** Lists the open invitations. */
export function Invitations({ isOfInstallation = false }: { isOfInstallation?: boolean }) {
  const key = invitationsKey(isOfInstallation)
  const { value } = useLoaded(key, () =>
    send<{ invitations: Invitation[] }>('GET', '/console/v1/invitations', { isOfInstallation }),
  )
  const withdraw = (id: string) =>
    act(() => send('DELETE', `/console/v1/invitations/${id}`, { isOfInstallation }), 'The link no longer works', key)
  const invitationColumns: Column<Invitation>[] = [
    { title: 'E-mail', cell: ({ email }) => email },
    { title: 'Roles', cell: invitation => invitation.roles.map(inWords).join(', '), isMinor: true },
    { title: 'Expires', cell: ({ expiresAt }) => <Time at={expiresAt} /> },
    { title: 'Withdraw', isTitleHidden: true, cell: ({ id }) => <Button act={() => withdraw(id)}>Withdraw</Button> },
  ]
  if (value === undefined || value.invitations.length === 0) return null
  // Operators have no roles.
  const shown = invitationColumns.filter(({ title }) => !isOfInstallation || title !== 'Roles')
  return <TablePanel title="Open invitations" columns={shown} list={{ rows: value.invitations }} />
}
