import { useState } from 'preact/hooks'
import { act, actUnlessUndone } from '../../act.ts'
import { send } from '../../api.ts'
import { MainButton, TextButton } from '../../components/button.tsx'
import { Drawer, DrawerButton, Page } from '../../components/layout.tsx'
import { Secret } from '../../components/states.tsx'
import { type Column, TablePanel } from '../../components/table.tsx'
import { Time } from '../../components/values.tsx'
import { useLoaded } from '../../query.ts'
import { session } from '../../session.ts'
import { EmailOf, Invitations, Invite, type User } from '../users.tsx'

type Operator = User & { isOperator: boolean }

const key = 'operators'
const isOfInstallation = true

function setDisabled({ id, name }: Operator, isDisabled: boolean): void {
  const change = () => send('PATCH', `/console/v1/users/${id}`, { body: { isDisabled }, isOfInstallation })
  if (isDisabled) actUnlessUndone(`${name} can no longer sign in.`, change, { changes: [key] })
  else void act(change, `${name} can sign in again`, key)
}

/** Lists the operators, who have all permissions in this installation. */
export default function Operators() {
  const [passwordLink, setPasswordLink] = useState<string>()
  const { value, error, reload } = useLoaded(key, async () => {
    const { users } = await send<{ users: Operator[] }>('GET', '/console/v1/users?take=1000', { isOfInstallation })
    return users.filter(({ isOperator }) => isOperator)
  })
  const createPasswordLink = async ({ id }: Operator) => {
    const path = `/console/v1/users/${id}/password-link`
    const made = await act(() => send<{ url: string }>('POST', path, { isOfInstallation }), undefined)
    setPasswordLink(made?.url)
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
      cell: operator => {
        const { id, name, isDisabled } = operator
        const verb = isDisabled ? 'Enable' : 'Disable'
        if (id === session.value?.user.id) return false
        return (
          <div class="actions">
            {!isDisabled && (
              <TextButton label={`New password for ${name}`} act={() => createPasswordLink(operator)}>
                New password
              </TextButton>
            )}
            <TextButton label={`${verb} ${name}`} act={() => setDisabled(operator, !isDisabled)}>
              {verb}
            </TextButton>
          </div>
        )
      },
    },
  ]
  const isAlone = value?.filter(({ isDisabled }) => !isDisabled).length === 1
  return (
    <Page
      title="Operators"
      actions={
        <DrawerButton look={MainButton} icon="plus" text="Invite an operator" pageAction="invite-operator">
          {() => <Invite isOfInstallation />}
        </DrawerButton>
      }
    >
      <div class="stack">
        {isAlone && <p class="notice">Approving a payout batch takes two operators. Invite a second operator.</p>}
        <TablePanel label="Operators" columns={columns} list={{ rows: value, error, reload }} />
        <Invitations isOfInstallation />
      </div>
      <Drawer title="New password" isOpen={passwordLink !== undefined} onClose={() => setPasswordLink(undefined)}>
        <Secret text={passwordLink ?? ''} label="Copy the link">
          Send this link to the person. The link works once, within a day, and is not shown again.
        </Secret>
      </Drawer>
    </Page>
  )
}
