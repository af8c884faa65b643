import { useEffect, useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { send } from '../api.ts'
import { Field, Form } from '../components/form.tsx'
import { Skeleton } from '../components/states.tsx'
import { inWords } from '../format.ts'
import { explain } from '../problems.ts'
import { begin, type Session } from '../session.ts'
import { SignInBox } from './sign-in.tsx'

type Invitation = {
  email: string
  roles: string[]
  partner?: { id: string; name: string } | null
  hasUser: boolean
}

/** Pages opened by a link with a token in the fragment: an invitation, a new password, or the set-up of the first operator. */
export const linkPages = ['invitation', 'password', 'set-up'] as const
type LinkPage = (typeof linkPages)[number]

const titles: Record<LinkPage, string> = {
  invitation: 'You have been invited',
  password: 'Choose a new password',
  'set-up': 'Set up the console',
}

export function ByLink({ page }: { page: LinkPage }) {
  const { route } = useLocation()
  const [token] = useState(() => location.hash.slice(1))
  useEffect(() => {
    document.title = `${titles[page]} · Midmonth`
    // A token must not stay in the address, where it would be bookmarked or shared.
    history.replaceState(null, '', location.pathname)
  }, [page])
  const signIn = (started: Session) => {
    begin(started)
    route('/console', true)
  }
  return (
    <SignInBox title={titles[page]}>
      {token === '' ? (
        <p class="problem" role="alert">
          The address is incomplete. Open the complete link again.
        </p>
      ) : page === 'invitation' ? (
        <Accept token={token} onEnter={signIn} />
      ) : page === 'password' ? (
        <NewPassword token={token} />
      ) : (
        <SetUp token={token} onEnter={signIn} />
      )}
    </SignInBox>
  )
}

function Accept({ token, onEnter }: { token: string; onEnter: (session: Session) => void }) {
  const [invitation, setInvitation] = useState<Invitation>()
  const [problem, setProblem] = useState('')
  useEffect(() => {
    send<Invitation>('POST', '/console/v1/invitations/find', { body: { token } })
      .then(setInvitation)
      .catch(error => setProblem(explain(error).advice))
  }, [token])
  if (problem !== '')
    return (
      <p class="problem" role="alert">
        {problem}
      </p>
    )
  if (invitation === undefined) return <Skeleton lines={3} />
  const { email, roles, partner, hasUser } = invitation
  return (
    <>
      <p>
        {partner ? `${partner.name}: ${roles.map(inWords).join(', ')}` : 'As an operator of this installation'}, for{' '}
        {email}.
      </p>
      {hasUser && <p class="notice">Sign in as {email} first, then open the link again.</p>}
      <Form
        submit="Accept"
        onSubmit={async fields => {
          onEnter(await send<Session>('POST', '/console/v1/invitations/accept', { body: { token, ...fields } }))
        }}
      >
        {!hasUser && (
          <>
            <Field label="Your name" name="name" isRequired />
            <Field label="Choose a password" name="password" type="password" isRequired />
          </>
        )}
      </Form>
    </>
  )
}

function NewPassword({ token }: { token: string }) {
  const { route } = useLocation()
  return (
    <Form
      submit="Change the password"
      onSubmit={async ({ newPassword }) => {
        await send('POST', '/console/v1/password/reset', { body: { token, newPassword } })
        route('/console/sign-in', true)
      }}
    >
      <Field label="New password" name="newPassword" type="password" problemsOf={['password']} isRequired />
    </Form>
  )
}

function SetUp({ token, onEnter }: { token: string; onEnter: (session: Session) => void }) {
  return (
    <Form
      submit="Become the operator"
      onSubmit={async fields =>
        onEnter(await send<Session>('POST', '/console/v1/set-up', { body: { token, ...fields } }))
      }
    >
      <Field label="Your name" name="name" isRequired />
      <Field label="E-mail address" name="email" type="email" isRequired />
      <Field label="Choose a password" name="password" type="password" isRequired />
    </Form>
  )
}
