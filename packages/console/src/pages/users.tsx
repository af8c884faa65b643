import { useState } from 'preact/hooks'
import { act, actUnlessUndone } from '../act.ts'
import { send } from '../api.ts'
import { ActButton } from '../components/act-button.tsx'
import { Field, Form } from '../components/form.tsx'
import { Icon } from '../components/icon.tsx'
import { Drawer, Page, Panel } from '../components/layout.tsx'
import { Code, Empty } from '../components/states.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Time } from '../components/values.tsx'
import { inWords } from '../format.ts'
import { reload, useLoaded } from '../query.ts'
import { type Role, session } from '../session.ts'
import { toast } from '../toasts.ts'

type User = {
  id: string
  email: string
  name: string
  roles: Role[]
  isDisabled: boolean
  hasTotp: boolean
  hasIdentity: boolean
  lastSignInAt: string | null
}
type Invitation = { id: string; email: string; roles: Role[]; expiresAt: string }

const roles: [Role, string][] = [
  ['admin', 'Everything for the partner, its users included'],
  ['payroll', 'Members, lists, pay runs, settlements'],
  ['support', 'Reads; cancels withdrawals; the request log'],
  ['developer', 'API keys, webhooks, the request log, events'],
  ['viewer', 'Reads members, pay and withdrawals'],
]

/** The people who may use the console for the partner shown. */
export default function Users() {
  const [isInviting, setIsInviting] = useState(false)
  const [changing, setChanging] = useState<User>()
  const [link, setLink] = useState<string>()
  const users = useLoaded('users', () => send<{ users: User[] }>('GET', '/console/v1/users?take=1000'))
  const close = () => {
    setIsInviting(false)
    setLink(undefined)
  }
  const columns: Column<User>[] = [
    { title: 'Name', cell: ({ name }) => <b>{name}</b> },
    { title: 'E-mail', cell: ({ email }) => email, isMinor: true },
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
            empty={<Empty title="No users yet">Invite a person, and send them the link yourself.</Empty>}
          />
        </Panel>
        <Invitations />
      </div>
      <Drawer title="Invite a person" isOpen={isInviting} onClose={close}>
        {link === undefined ? (
          <Form
            submit="Create the link"
            onSubmit={async ({ email = '', ...chosen }) => {
              const body = { email, roles: Object.keys(chosen) }
              setLink((await send<{ url: string }>('POST', '/console/v1/invitations', { body })).url)
              reload('invitations')
            }}
          >
            {problemOf => (
              <>
                <Field label="E-mail address" name="email" type="email" problem={problemOf('email')} isRequired />
                <RoleFields held={['viewer']} />
              </>
            )}
          </Form>
        ) : (
          <>
            <p>Send this link to the person. It works once, for seven days, and is not shown again.</p>
            <Code text={link} label="Copy the link" />
          </>
        )}
      </Drawer>
      <Drawer title={changing?.name ?? ''} isOpen={changing !== undefined} onClose={() => setChanging(undefined)}>
        {changing && <Change user={changing} onDone={() => setChanging(undefined)} />}
      </Drawer>
    </Page>
  )
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
      `${user.name} can no longer use these pages.`,
      () => send('DELETE', `/console/v1/users/${user.id}`),
      { changes: ['users'] },
    )
  }
  const unlink = async () => {
    const done = await act(
      () => send('DELETE', `/console/v1/users/${user.id}/identity`),
      `${user.name} is unlinked, and signed out`,
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
          toast('Saved; they have to sign in again')
          reload('users')
          onDone()
        }}
      >
        {() => <RoleFields held={user.roles} />}
      </Form>
      <div>
        <button type="button" class="button" onClick={remove}>
          Remove from this partner
        </button>
      </div>
      {user.hasIdentity && session.value?.isOperator && (
        <section class="stack">
          <p class="quiet">
            Signs in through your organisation. Unlink when the organisation has replaced the person’s account, or has
            given the address to another person. The next person who signs in there with {user.email} then gets this
            user, with its roles.
          </p>
          <ActButton act={unlink}>Unlink from the organisation</ActButton>
        </section>
      )}
    </>
  )
}

function Invitations() {
  const { value } = useLoaded('invitations', () =>
    send<{ invitations: Invitation[] }>('GET', '/console/v1/invitations'),
  )
  const columns: Column<Invitation>[] = [
    { title: 'E-mail', cell: ({ email }) => email },
    { title: 'Roles', cell: invitation => invitation.roles.map(inWords).join(', '), isMinor: true },
    { title: 'Expires', cell: ({ expiresAt }) => <Time at={expiresAt} /> },
    {
      title: 'Withdraw',
      cell: ({ id }) => (
        <ActButton
          look="text-button"
          act={() =>
            act(() => send('DELETE', `/console/v1/invitations/${id}`), 'The link no longer works', 'invitations')
          }
        >
          Withdraw
        </ActButton>
      ),
    },
  ]
  if (value === undefined || value.invitations.length === 0) return null
  return (
    <Panel isFlush title="Open invitations">
      <Table label="Open invitations" columns={columns} list={{ rows: value.invitations }} keyOf={({ id }) => id} />
    </Panel>
  )
}
