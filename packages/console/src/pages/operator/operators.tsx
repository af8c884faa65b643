import { useState } from 'preact/hooks'
import { act, actUnlessUndone } from '../../act.ts'
import { send } from '../../api.ts'
import { ActButton } from '../../components/act-button.tsx'
import { Icon } from '../../components/icon.tsx'
import { Drawer, Page, Panel } from '../../components/layout.tsx'
import { usePageAction } from '../../components/page-action.ts'
import { Code } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/values.tsx'
import { useLoaded } from '../../query.ts'
import { session } from '../../session.ts'
import { EmailOf, Invitations, InviteDrawer, type User } from '../users.tsx'

type Operator = User & { isOperator: boolean }

const key = 'operators'
const isOfInstallation = true

/** Lists the operators, who have all permissions in this installation. */
export default function Operators() {
  const [isInviting, setIsInviting] = useState(false)
  usePageAction('invite-operator', () => setIsInviting(true))
  const [passwordLink, setPasswordLink] = useState<string>()
  const { value, error, reload } = useLoaded(key, async () => {
    const { users } = await send<{ users: Operator[] }>('GET', '/console/v1/users?take=1000', { isOfInstallation })
    return users.filter(({ isOperator }) => isOperator)
  })
  const setDisabled = ({ id, name }: Operator, isDisabled: boolean) => {
    const change = () => send('PATCH', `/console/v1/users/${id}`, { body: { isDisabled }, isOfInstallation })
    if (isDisabled) actUnlessUndone(`${name} can no longer sign in.`, change, { changes: [key] })
    else void act(change, `${name} can sign in again`, key)
  }
  const columns: Column<Operator>[] = [
    {
      title: 'Name',
      cell: ({ id, name, isDisabled }) => (
        <>
          <b>{name}</b>
          {id === session.value?.user.id && <span class="quiet"> (you)</span>}
          {isDisabled && <span class="quiet"> (disabled)</span>}
        </>
      ),
    },
    { title: 'E-mail', cell: user => <EmailOf user={user} /> },
    { title: 'Second factor', cell: ({ hasTotp }) => (hasTotp ? 'Yes' : 'No'), isMinor: true },
    { title: 'Last sign-in', cell: ({ lastSignInAt }) => <Time at={lastSignInAt} />, isMinor: true },
    {
      title: 'Change',
      isTitleHidden: true,
      cell: operator =>
        operator.id !== session.value?.user.id && (
          <div class="actions">
            {!operator.isDisabled && (
              <ActButton
                look="text-button"
                label={`New password for ${operator.name}`}
                act={async () => {
                  const path = `/console/v1/users/${operator.id}/password-link`
                  const made = await act(() => send<{ url: string }>('POST', path, { isOfInstallation }), undefined)
                  setPasswordLink(made?.url)
                }}
              >
                New password
              </ActButton>
            )}
            <button
              type="button"
              class="text-button"
              aria-label={`${operator.isDisabled ? 'Enable' : 'Disable'} ${operator.name}`}
              onClick={() => setDisabled(operator, !operator.isDisabled)}
            >
              {operator.isDisabled ? 'Enable' : 'Disable'}
            </button>
          </div>
        ),
    },
  ]
  const isAlone = value?.filter(({ isDisabled }) => !isDisabled).length === 1
  return (
    <Page
      title="Operators"
      actions={
        <button type="button" class="button button-main" onClick={() => setIsInviting(true)}>
          <Icon name="plus" />
          Invite an operator
        </button>
      }
    >
      <div class="stack">
        {isAlone && <p class="notice">Approving a payout batch takes two operators. Invite a second operator.</p>}
        <Panel isFlush>
          <Table label="Operators" columns={columns} list={{ rows: value, error, reload }} keyOf={({ id }) => id} />
        </Panel>
        <Invitations isOfInstallation />
      </div>
      <InviteDrawer isOpen={isInviting} isOfInstallation onClose={() => setIsInviting(false)} />
      <Drawer title="New password" isOpen={passwordLink !== undefined} onClose={() => setPasswordLink(undefined)}>
        <p>Send this link to the person. The link works once, within a day, and is not shown again.</p>
        <Code text={passwordLink ?? ''} label="Copy the link" />
      </Drawer>
    </Page>
  )
}
