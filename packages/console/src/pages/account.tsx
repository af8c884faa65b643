import { useState } from 'preact/hooks'
import { act } from '../act.ts'
import { send } from '../api.ts'
import { TextButton } from '../components/button.tsx'
import { Field, Form } from '../components/form.tsx'
import { Page, Panel } from '../components/layout.tsx'
import { Code } from '../components/states.tsx'
import { type Column, TablePanel } from '../components/table.tsx'
import { Time } from '../components/values.tsx'
import { inWords } from '../format.ts'
import { useLoaded } from '../query.ts'
import { refreshSession, session } from '../session.ts'
import { toast } from '../toasts.ts'

type OwnSession = {
  id: string
  method: string
  address: string
  userAgent: string | null
  createdAt: string
  lastUsedAt: string
  isCurrent: boolean
}

/** The reader's own account: sessions, password and second factor. */
export default function Account() {
  return (
    <Page title="Your account">
      <div class="stack">
        <Sessions />
        <div class="halves">
          <Password />
          <SecondFactor />
        </div>
      </div>
    </Page>
  )
}

const columns: Column<OwnSession>[] = [
  { title: 'Since', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'Last used', cell: ({ lastUsedAt }) => <Time at={lastUsedAt} />, isMinor: true },
  { title: 'Browser', cell: ({ userAgent }) => browserOf(userAgent) },
  { title: 'Address', cell: ({ address }) => address, isMinor: true },
  { title: 'Method', cell: ({ method }) => inWords(method), isMinor: true },
  {
    title: 'End',
    cell: ({ id, isCurrent }) =>
      isCurrent ? (
        <span class="quiet">This session</span>
      ) : (
        <TextButton
          act={() => act(() => send('DELETE', `/console/v1/sessions/${id}`), 'The session has ended', 'own-sessions')}
        >
          End
        </TextButton>
      ),
  },
]

function Sessions() {
  const { value, error, reload } = useLoaded('own-sessions', () =>
    send<{ sessions: OwnSession[] }>('GET', '/console/v1/sessions'),
  )
  return (
    <TablePanel
      title="Sessions"
      columns={columns}
      list={{ rows: value?.sessions, error, reload }}
      empty="No sessions"
    />
  )
}

/** The browser's name, if the user agent contains a known one. */
function browserOf(userAgent: string | null): string {
  return /(Firefox|Edg|OPR|Chrome|Safari)\/\d+/.exec(userAgent ?? '')?.[0].replace('/', ' ') ?? 'Other'
}

function Password() {
  return (
    <Panel title="Password">
      <Form
        submit="Change the password"
        onSubmit={async ({ password, newPassword }) => {
          await send('POST', '/console/v1/password', { body: { password, newPassword } })
          toast('Password changed; your other sessions have ended')
        }}
      >
        <Field label="Current password" name="password" type="password" isRequired />
        <Field label="New password" name="newPassword" type="password" isRequired />
      </Form>
    </Panel>
  )
}

function SecondFactor() {
  const [secret, setSecret] = useState<{ secret: string; uri: string }>()
  const [recoveryCodes, setRecoveryCodes] = useState<string[]>()
  const hasTotp = session.value?.user.hasTotp ?? false
  if (recoveryCodes !== undefined)
    return (
      <Panel title="Second factor">
        <div class="stack stack-s">
          <p>
            The second factor is on. Store these recovery codes: each signs you in once if you lose your device, and
            they are not shown again.
          </p>
          <Code text={recoveryCodes.join('\n')} label="Copy the codes" />
        </div>
      </Panel>
    )
  return (
    <Panel title="Second factor">
      {hasTotp ? (
        <Form
          submit="Turn off"
          onSubmit={async ({ password }) => {
            await send('DELETE', '/console/v1/totp', { body: { password } })
            await refreshSession()
            toast('Second factor turned off')
          }}
        >
          <Field label="Password" name="password" type="password" isRequired />
        </Form>
      ) : secret === undefined ? (
        <Form
          submit="Set up"
          onSubmit={async ({ password }) => {
            setSecret(await send<{ secret: string; uri: string }>('POST', '/console/v1/totp', { body: { password } }))
          }}
        >
          <Field
            label="Password"
            name="password"
            type="password"
            note="You then enter a code from an authenticator app at each sign-in"
            isRequired
          />
        </Form>
      ) : (
        <Form
          submit="Turn on"
          onSubmit={async ({ code = '' }) => {
            const on = await send<{ recoveryCodes: string[] }>('POST', '/console/v1/totp/confirm', {
              // Apps show the code in two groups.
              body: { code: code.replaceAll(/\s/g, '') },
            })
            setRecoveryCodes(on.recoveryCodes)
            await refreshSession()
          }}
        >
          <p>Enter this key in your authenticator app. Then enter the code that the app shows.</p>
          <Code text={secret.secret} label="Copy the key" />
          <Field label="Code" name="code" isRequired />
        </Form>
      )}
    </Panel>
  )
}
