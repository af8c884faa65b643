import { useState } from 'preact/hooks'
import { act, actUnlessUndone } from '../act.ts'
import { send } from '../api.ts'
import { ActButton } from '../components/act-button.tsx'
import { Field, Form } from '../components/form.tsx'
import { Icon } from '../components/icon.tsx'
import { Drawer, Page, Panel } from '../components/layout.tsx'
import { usePageAction } from '../components/page-action.ts'
import { Code, Empty } from '../components/states.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Time } from '../components/values.tsx'
import { inWords } from '../format.ts'
import { reload, useLoaded } from '../query.ts'
import { type Role, session } from '../session.ts'
import { toast } from '../toasts.ts'

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

const roles: [Role, string][] = [
  ['admin', 'Everything, including users'],
  ['payroll', 'Members, imports, pay runs, settlements'],
  ['support', 'Read access, cancelling withdrawals, the request log'],
  ['developer', 'API keys, webhooks, the request log, events'],
  ['viewer', 'Read access to members, pay and withdrawals'],
]

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

/** Lists the users of the partner shown. */
export default function Users() {
  const [isInviting, setIsInviting] = useState(false)
  usePageAction('invite-user', () => setIsInviting(true))
  const [changing, setChanging] = useState<User>()
  const users = useLoaded('users', () => send<{ users: User[] }>('GET', '/console/v1/users?take=1000'))
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
          <button type="button" class="text-button" onClick={() => setChanging(user)}>
            Roles
          </button>
        ),
    },
  ]
  return (
    <Page
      title="Users"
      actions={
        <button type="button" class="button button-main" onClick={() => setIsInviting(true)}>
          <Icon name="plus" />
          Invite a person
        </button>
      }
    >
      <div class="stack">
        <Panel isFlush>
          <Table
            label="Users"
            columns={columns}
            list={{ rows: users.value?.users, error: users.error, reload: users.reload }}
            keyOf={({ id }) => id}
            empty={<Empty title="No users yet">Invite a person and send them the link yourself.</Empty>}
          />
        </Panel>
        <Invitations />
      </div>
      <InviteDrawer isOpen={isInviting} onClose={() => setIsInviting(false)} />
      <Drawer title={changing?.name ?? ''} isOpen={changing !== undefined} onClose={() => setChanging(undefined)}>
        {changing && <Change user={changing} onDone={() => setChanging(undefined)} />}
      </Drawer>
    </Page>
  )
}

/** Creates an invitation link, either to the partner shown with chosen roles, or to become an operator of the installation. */
export function InviteDrawer({
  isOpen,
  isOfInstallation = false,
  onClose,
}: {
  isOpen: boolean
  isOfInstallation?: boolean
  onClose: () => void
}) {
  const [link, setLink] = useState<string>()
  return (
    <Drawer
      title={isOfInstallation ? 'Invite an operator' : 'Invite a person'}
      isOpen={isOpen}
      onClose={() => {
        setLink(undefined)
        onClose()
      }}
    >
      {link === undefined ? (
        <Form
          submit="Create the link"
          onSubmit={async ({ email = '', ...chosen }) => {
            const body = isOfInstallation ? { email } : { email, roles: Object.keys(chosen) }
            const path = '/console/v1/invitations'
            setLink((await send<{ url: string }>('POST', path, { body, isOfInstallation })).url)
            reload(invitationsKey(isOfInstallation))
          }}
        >
          {problemOf => (
            <>
              <Field label="E-mail address" name="email" type="email" problem={problemOf('email')} isRequired />
              {isOfInstallation ? (
                <p class="quiet">An operator has all permissions for every partner of this installation.</p>
              ) : (
                <RoleFields held={['viewer']} />
              )}
            </>
          )}
        </Form>
      ) : (
        <>
          <p>Send this link to the person. The link works once, within seven days, and is not shown again.</p>
          <Code text={link} label="Copy the link" />
        </>
      )}
    </Drawer>
  )
}

function invitationsKey(isOfInstallation: boolean): string {
  return isOfInstallation ? 'operator-invitations' : 'invitations'
}

function RoleFields({ held }: { held: Role[] }) {
  return (
    <fieldset class="role-fields">
      <legend>Roles</legend>
      {roles.map(([role, meaning]) => (
        <label key={role}>
          <input type="checkbox" name={role} defaultChecked={held.includes(role)} />
          <span>
            <b>{inWords(role)}</b> <span class="quiet">{meaning}</span>
          </span>
        </label>
      ))}
    </fieldset>
  )
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
          toast('Saved; the user must sign in again')
          reload('users')
          onDone()
        }}
      >
        {() => <RoleFields held={user.roles} />}
      </Form>
      <div>
        <button type="button" class="button button-bad" onClick={remove}>
          Remove from this partner
        </button>
      </div>
      {user.hasIdentity && session.value?.isOperator && (
        <section class="stack">
          <p class="quiet">
            Signs in through your organisation. Unlink the user if the organisation has replaced the person’s account or
            given the address to another person. The next person who signs in there with {user.email} then becomes this
            user, with the same roles.
          </p>
          <ActButton act={unlink}>Unlink from the organisation</ActButton>
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
  const rolesColumn: Column<Invitation> = {
    title: 'Roles',
    cell: invitation => invitation.roles.map(inWords).join(', '),
    isMinor: true,
  }
  const columns: Column<Invitation>[] = [
    { title: 'E-mail', cell: ({ email }) => email },
    ...(isOfInstallation ? [] : [rolesColumn]),
    { title: 'Expires', cell: ({ expiresAt }) => <Time at={expiresAt} /> },
    {
      title: 'Withdraw',
      isTitleHidden: true,
      cell: ({ id }) => <ActButton act={() => withdraw(id)}>Withdraw</ActButton>,
    },
  ]
  if (value === undefined || value.invitations.length === 0) return null
  return (
    <Panel isFlush title="Open invitations">
      <Table label="Open invitations" columns={columns} list={{ rows: value.invitations }} keyOf={({ id }) => id} />
    </Panel>
  )
}
