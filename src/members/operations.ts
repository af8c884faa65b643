import { cursorOf, pageOf } from '../contract/list.ts'
import type { Reader } from '../database/database.ts'
import { csvHeaders } from '../http/bodies/csv.ts'
import { maskProfile } from '../http/masked-accounts.ts'
import { metadataOperations } from '../http/metadata-operations.ts'
import { type Call, type Disclosed, named, operationWith } from '../http/operation.ts'
import type { ProblemName } from '../kernel/errors.ts'
import * as metadata from '../metadata/metadata.ts'
import { payroll, staff } from '../users/roles.ts'
import { auditOf } from './audit.ts'
import { consoleOperations } from './console-operations.ts'
import { columns } from './fields.ts'
import { fileOf } from './file.ts'
import { excludeErasure } from './locks.ts'
import * as members from './members.ts'
import { profileOf } from './rules.ts'
import {
  Member,
  MemberQuery,
  MemberRemoved,
  Members,
  MembersWithMetadata,
  MemberUpdate,
  MemberWithMetadata,
  NewMember,
} from './schema.ts'

const tag = 'Members'
const operation = operationWith({ tag })
const representation = { description: 'with its metadata.', schema: MemberWithMetadata }
const refusals: ProblemName[] = ['MemberAlreadyInvited', 'InvalidUpdateMemberPayload']

const inviteMember = operation({
  route: 'POST /v1/members',
  scope: 'members:write',
  roles: payroll,
  sdk: 'members.invite',
  summary: 'Invite a member',
  description:
    'The member is `invited`, or `active` at once if the partner activates members automatically. The e-mail must be unique among active and invited members, the `workerId` among all members.',
  body: NewMember,
  success: { status: 201, description: 'The new member.', schema: Member, representation },
  problems: ['MemberAlreadyInvited', 'InvalidAddMemberPayload'],
  async write(tx, call) {
    const { partner, body, now } = call
    const member = await members.invite(tx, { partner, body, now })
    const audit = auditOf('member.invite', { before: undefined, after: member })
    return { body: await bodyOf(tx, call, member), resourceId: member.id, audit }
  },
})

const getMembers = operation({
  route: 'GET /v1/members',
  mayReadReplica: true,
  scope: 'members:read',
  roles: staff,
  sdk: { json: 'members.list', file: 'members.export' },
  summary: 'List members',
  description:
    'Newest first. A filter may be repeated (up to 100 times) and matches any of its values; a member must match every filter. With `accept: text/csv`, returns all matching members as a file, oldest first, ignoring `skip` and `take`. With `statuses=active&statuses=invited` the file is the complete list: uploading it unedited to `PUT /v1/members/jobs/csv` or `/v2/…` changes nothing.',
  query: MemberQuery,
  success: {
    description: 'One page of members, or all of them as a file.',
    schema: Members,
    representation: { description: 'each member with its metadata.', schema: MembersWithMetadata },
    csv: {
      description:
        'The columns of the template; cells that a spreadsheet would read as a formula are prefixed with an apostrophe.',
      example: `${columns.join(',')}\r\nsam.okafor@example.com,Sam,Okafor,'+447700900123,Bronze,E-10442,089999,66374958,Sam Okafor,,1990-06-24,,true\r\n`,
    },
  },
  problems: ['NotFound'],
  async run(call, { read, source, download }) {
    const { skip: _skip, take: _take, after: _after, ...filter } = call.query
    const asked = { partnerId: call.partner.id, filter }
    if (call.prefersCsv) {
      const db = await source()
      const pages = members.listAll(db, asked)
      const headers = csvHeaders('members.csv')
      if (call.user !== undefined) return download({ headers, parts: fileOf(masked(pages)) })
      const count = await members.count(db, asked)
      return download({
        headers,
        parts: fileOf(pages),
        disclosed: disclosedBy('member.export', call, { filter, count }),
      })
    }
    return await read(async reader => {
      const page = pageOf(call.query)
      const found = await members.list(reader, { ...asked, page, cursor: cursorOf(call.query) })
      const total = await members.count(reader, asked)
      return {
        body: { members: await bodiesOf(reader, call, found), total, ...page },
        disclosed: disclosedBy('member.read', call, { filter, count: found.length }),
      }
    })
  },
})

const getMember = operation({
  route: 'GET /v1/members/:memberId',
  scope: 'members:read',
  roles: staff,
  sdk: 'members.get',
  summary: 'Get a member',
  success: { description: 'The member.', schema: Member, representation },
  async read(reader, call) {
    const { memberId } = call.params
    const member = await members.find(reader, { partnerId: call.partner.id, memberId })
    const disclosed = { action: 'member.read', resourceId: memberId, details: { count: 1 } } as const
    return { body: await bodyOf(reader, call, member), disclosed: call.user === undefined ? disclosed : undefined }
  },
})

const updateMember = operation({
  route: 'PATCH /v1/members/:memberId',
  scope: 'members:write',
  roles: payroll,
  sdk: 'members.update',
  summary: 'Update a member',
  description:
    'Changes the given fields; null removes a value. The e-mail can change only while the member is `invited`. An inactive member stays inactive.',
  body: MemberUpdate,
  success: { description: 'The updated member.', schema: Member, representation },
  problems: refusals,
  async write(tx, call) {
    const { partner, now, body: wanted } = call
    const { memberId } = call.params
    const updated = await members.change(tx, { partner, command: { type: 'Update', memberId, wanted }, now })
    const audit = auditOf('member.update', updated)
    return { body: await bodyOf(tx, call, updated.after), resourceId: memberId, audit }
  },
})

const replaceMember = operation({
  route: 'PUT /v1/members/:memberId',
  scope: 'members:write',
  roles: payroll,
  sdk: 'members.replace',
  summary: 'Replace a member',
  description:
    'Replaces the whole profile: fields that are left out are removed. Reinstates an inactive member as `invited`, or as `active` if the partner activates members automatically. The e-mail of an active member cannot change.',
  body: NewMember,
  success: { description: 'The member after the change.', schema: Member, representation },
  problems: refusals,
  async write(tx, call) {
    const { partner, body: wanted, now } = call
    const { memberId } = call.params
    const replaced = await members.change(tx, { partner, command: { type: 'Replace', memberId, wanted }, now })
    const audit = auditOf('member.replace', replaced)
    return { body: await bodyOf(tx, call, replaced.after), resourceId: memberId, audit }
  },
})

const removeMember = operation({
  route: 'DELETE /v1/members/:memberId',
  scope: 'members:write',
  roles: payroll,
  sdk: 'members.offboard',
  summary: 'Remove a member',
  description:
    'Offboards the member, who becomes `inactive` and can no longer withdraw; the books are kept. Idempotent.',
  success: { description: 'The member is inactive.', schema: MemberRemoved },
  async write(tx, { partner, params: { memberId }, now }) {
    const offboarded = await members.change(tx, { partner, command: { type: 'Offboard', memberId }, now })
    return { body: { message: 'OK' }, resourceId: memberId, audit: auditOf('member.offboard', offboarded) }
  },
})

const activateMember = operation({
  route: 'POST /v1/members/:memberId/activate',
  scope: 'members:write',
  roles: payroll,
  sdk: 'members.activate',
  summary: 'Activate a member',
  description: 'Activates an invited member, who can then withdraw. Idempotent; an inactive member is a `Conflict`.',
  success: { description: 'The active member.', schema: Member, representation },
  async write(tx, call) {
    const { partner, now } = call
    const { memberId } = call.params
    const activated = await members.change(tx, { partner, command: { type: 'Activate', memberId }, now })
    const audit = auditOf('member.activate', activated)
    return { body: await bodyOf(tx, call, activated.after), resourceId: memberId, audit }
  },
})

const memberMetadata = metadataOperations({
  kind: 'member',
  names: { id: 'Member', summary: 'a member', sdk: { resource: 'members', of: '' } },
  tag,
  path: '/v1/members/:memberId',
  scopes: { read: 'members:read', write: 'members:write' },
  roles: { read: staff, write: payroll },
  requireKnown: (reader, { partnerId, resourceId: memberId }) => members.requireMember(reader, { partnerId, memberId }),
  lock: (tx, { partnerId, resourceId: memberId }) => excludeErasure(tx, { partnerId, memberId }),
})

export const memberOperations = [
  ...memberMetadata,
  ...named({ inviteMember, getMembers, getMember, updateMember, replaceMember, removeMember, activateMember }),
  ...consoleOperations,
]

type Caller = Pick<Call, 'partner' | 'prefersRepresentation'>

async function bodyOf(db: Reader, caller: Caller, member: members.Member) {
  const [body] = await bodiesOf(db, caller, [member])
  return body
}

/** Members in the shape that the caller prefers. */
async function bodiesOf(db: Reader, { partner, prefersRepresentation }: Caller, found: members.Member[]) {
  const bodies = found.map(member => ({ memberId: member.id, status: member.status, ...profileOf(member) }))
  if (!prefersRepresentation) return bodies
  const asked = found.map(({ id }) => ({ partnerId: partner.id, resourceId: id }))
  const all = await metadata.findAll(db, asked)
  return bodies.map(body => ({ ...body, metadata: all.get(body.memberId) }))
}

/** The trace of a list. Users of the console see it masked. Filters that name a person are only counted: entries outlive the person. */
function disclosedBy(
  action: 'member.read' | 'member.export',
  { partner, user }: Pick<Call, 'partner' | 'user'>,
  { filter, count }: { filter: members.MemberFilter; count: number },
): Disclosed | undefined {
  if (user !== undefined || count === 0) return undefined
  const { statuses, ...naming } = filter
  const named = Object.entries(naming).map(([name, value]) => [name, Array.isArray(value) ? value.length : 1])
  return { action, resourceId: partner.id, details: { count, filter: { statuses, ...Object.fromEntries(named) } } }
}

/** The members as a user of the console sees them. */
async function* masked(pages: AsyncIterable<members.Member[]>): AsyncGenerator<members.Member[]> {
  for await (const page of pages) yield page.map(maskProfile)
}
