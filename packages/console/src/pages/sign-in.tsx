import { ApiError } from '@midmonth/sdk'
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { send, sessionEnded } from '../api.ts'
import { messageOf } from '../problems.ts'
import { useLoaded } from '../query.ts'
import { begin, type Session, session } from '../session.ts'
import { Mark } from '../shell.tsx'
import { signInFaults } from '../sign-in-faults.ts'

/** Signs the reader in with a password and, if set up, a second factor; or by a link with a token in the fragment. */
export function SignIn() {
  const { path, url, query, route } = useLocation()
  const [problem, setProblem] = useState(signInFaults.get(query.fault) ?? '')
  const [needsTotp, setNeedsTotp] = useState(false)
  const [isBusy, setIsBusy] = useState(false)

  const methods = useLoaded('sign-in-methods', () =>
    send<{ hasOidc: boolean; needsSetUp: boolean }>('GET', '/console/v1/sign-in'),
  ).value

  const enter = (started: Session) => {
    begin(started)
    // After an expired session, the reader returns to the same page.
    route(path.startsWith('/console/sign-in') ? '/console' : url, true)
  }

  useEffect(() => {
    document.title = 'Sign in · Midmonth'
    const token = location.hash.slice(1)
    if (token === '') return
    // A token must not stay in the address, where it would be bookmarked or shared.
    history.replaceState(null, '', location.pathname)
    setIsBusy(true)
    send<Session>('POST', '/console/v1/sign-in/link', { body: { token } })
      .then(enter)
      .catch(error => {
        setIsBusy(false)
        const isRefused = error instanceof ApiError && error.status < 500
        setProblem(isRefused ? 'This link has expired or has already been used. Ask for a new one.' : messageOf(error))
      })
  }, [])

  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const fields = new FormData(event.currentTarget as HTMLFormElement)
    const totp = String(fields.get('totp') ?? '').replaceAll(' ', '')
    const body = { email: fields.get('email'), password: fields.get('password'), ...(totp === '' ? {} : { totp }) }
    setIsBusy(true)
    setProblem('')
    try {
      enter(await send<Session>('POST', '/console/v1/sign-in', { body }))
    } catch (error) {
      if (error instanceof ApiError && error.code === 'TotpRequired') setNeedsTotp(true)
      setProblem(refusal(error, needsTotp))
    }
    setIsBusy(false)
  }

  if (methods?.needsSetUp) return <NeedsSetUp />
  return (
    <SignInBox title="Sign in to Midmonth">
      <form class="stack" onSubmit={submit}>
        {problem === '' && sessionEnded.value && session.value != null && (
          <p class="notice" role="status">
            Your session has ended. Sign in to continue where you left off.
          </p>
        )}
        {problem !== '' && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <label class="field stack">
          <span>E-mail address</span>
          <input name="email" type="email" autocomplete="username" required />
        </label>
        <label class="field stack">
          <span>Password</span>
          <input name="password" type="password" autocomplete="current-password" required />
        </label>
        {needsTotp && (
          <label class="field stack">
            <span>Code from your authenticator app</span>
            <input name="totp" autocomplete="one-time-code" maxLength={40} required />
          </label>
        )}
        <button type="submit" class="button button-main" disabled={isBusy}>
          Sign in
        </button>
        {methods?.hasOidc && (
          <a class="button" href="/console/v1/oidc/start" target="_top">
            Sign in with your organisation
          </a>
        )}
        <p class="quiet">The command that started the sandbox printed a sign-in link.</p>
      </form>
    </SignInBox>
  )
}

/** Shown on a live installation without an operator, if the reader has not opened the set-up link. */
function NeedsSetUp() {
  return (
    <SignInBox title="Set up Midmonth">
      <p>This installation has no operator yet. Do one of these on its server:</p>
      <ul class="methods stack stack-s">
        <li>
          Open the set-up link in the log of the service, or in the file <code>console-set-up-link</code> of its data
          folder. It works once; the service writes a new one at each start.
        </li>
        <li>
          Run <code>midmonth operator create you@example.com</code>.
        </li>
      </ul>
    </SignInBox>
  )
}

/** The frame of the pages of readers who are not signed in. */
export function SignInBox({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <main class="sign-in">
      <div class="sign-in-box stack">
        <h1 class="row">
          <Mark /> {title}
        </h1>
        {children}
      </div>
    </main>
  )
}

function refusal(error: unknown, hadTotp: boolean): string {
  if (!(error instanceof ApiError) || error.status >= 500) return messageOf(error)
  if (error.status === 429) {
    const seconds = Number(error.headers.get('retry-after') ?? 60)
    return `Too many attempts. Try again in ${seconds < 90 ? `${seconds} seconds` : `${Math.ceil(seconds / 60)} minutes`}.`
  }
  if (error.code === 'TotpRequired')
    return hadTotp ? 'The code is wrong or has already been used.' : 'Enter the code from your authenticator app.'
  if (error.status === 401) return 'The e-mail address or the password is wrong.'
  return error.issues.map(({ message }) => message).join('; ')
}
