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
// As many ids as fit in an address.
const idsMax = 100

/** Queues a member for the next request, which loads the names of all members on the page. */
function requestName(id: MemberId): void {
  if (asked.has(id)) return
  asked.add(id)
  if (wanted.size === 0) queueMicrotask(() => void loadNames())
  wanted.add(id)
}

async function loadNames(): Promise<void> {
  const memberIds = [...wanted]
  wanted.clear()
  for (let start = 0; start < memberIds.length; start += idsMax) {
    const some = memberIds.slice(start, start + idsMax)
    const { members } = await api.members.list({ memberIds: some, take: idsMax }).catch(() => {
      // The next page that shows them requests them again.
      for (const id of some) asked.delete(id)
      return { members: [] }
    })
    const known = new Map(names.value)
    for (const { memberId, firstName, lastName } of members) known.set(memberId, `${firstName} ${lastName}`)
    names.value = known
  }
}

/** Shows a member's name if the reader may see names, otherwise the id. Links to the member's page. */
export function MemberName({ id }: { id: MemberId }) {
  const maySee = may('payroll', 'support', 'viewer')
  // A layout effect sends the request before the list is painted.
  useLayoutEffect(() => {
    if (maySee) requestName(id)
  }, [id, maySee])
  // A previous reader of this tab may have been allowed to see the name.
  const name = maySee ? names.value.get(id) : undefined
  if (name === undefined) return <Id id={id} isLink={maySee} />
  return (
    <a class="link" href={at(`members/${id}`)} title={id}>
      <bdi>{name}</bdi>
    </a>
  )
}
