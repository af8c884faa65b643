import type { Member } from '@midmonth/sdk'
import { signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import { api } from '../api.ts'
import { at } from '../places.ts'
import { may } from '../session.ts'
import { Id } from './values.tsx'

type MemberId = Member['memberId']

const names = signal<ReadonlyMap<string, string>>(new Map())
const wanted = new Set<MemberId>()
const asked = new Set<MemberId>()
// As many ids as an address can hold.
const idsMax = 100

/** Asks for the names of all members on the page in one request. */
function want(id: MemberId): void {
  if (asked.has(id)) return
  asked.add(id)
  if (wanted.size === 0) queueMicrotask(() => void askForNames())
  wanted.add(id)
}

async function askForNames(): Promise<void> {
  const memberIds = [...wanted]
  wanted.clear()
  for (let start = 0; start < memberIds.length; start += idsMax) {
    const some = memberIds.slice(start, start + idsMax)
    const { members } = await api.members.list({ memberIds: some, take: idsMax }).catch(() => {
      // The next page that shows them asks again.
      for (const id of some) asked.delete(id)
      return { members: [] }
    })
    const known = new Map(names.value)
    for (const { memberId, firstName, lastName } of members) known.set(memberId, `${firstName} ${lastName}`)
    names.value = known
  }
}

/** A member by name where the reader may see names, otherwise by id. Links to the member's page. */
export function MemberName({ id }: { id: MemberId }) {
  const maySee = may('payroll', 'support', 'viewer')
  // Before the list is painted: the names are on their way meanwhile.
  useLayoutEffect(() => {
    if (maySee) want(id)
  }, [id, maySee])
  // Another reader of this tab may have been allowed to see it.
  const name = maySee ? names.value.get(id) : undefined
  if (name === undefined) return <Id id={id} isLink={maySee} />
  return (
    <a class="link" href={at(`members/${id}`)} title={id}>
      <bdi>{name}</bdi>
    </a>
  )
}
