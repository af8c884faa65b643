import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { send } from '../api.ts'
import { session } from '../session.ts'

type User = { id: string; name: string }

const names = signal<ReadonlyMap<string, string>>(new Map())
let isAsked = false

async function loadNames(): Promise<void> {
  if (isAsked) return
  isAsked = true
  try {
    const path = '/console/v1/users?take=1000'
    const { users } = await send<{ users: User[] }>('GET', path, { isOfInstallation: true })
    names.value = new Map(users.map(({ id, name }) => [id, name]))
  } catch {
    // The next page tries again.
    isAsked = false
  }
}

/** Shows who did something on the operators' pages: a user by name, an operator key by id, a command by its login. */
export function Person({ who }: { who: string | null }) {
  const isUser = who?.startsWith('usr_') === true
  useEffect(() => {
    if (isUser) void loadNames()
  }, [isUser])
  if (who === null) return <span class="quiet">–</span>
  if (who === session.value?.user.id) return <span title={who}>you</span>
  const name = names.value.get(who)
  if (name !== undefined) return <span title={who}>{name}</span>
  return /^(usr|opk)_/.test(who) ? (
    <code title={who}>
      {who.slice(0, 4)}…{who.slice(-6)}
    </code>
  ) : (
    <span>{who}</span>
  )
}
