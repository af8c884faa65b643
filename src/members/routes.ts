import { createReadStream } from 'node:fs'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { cursorOf, pageOf } from '../contract/list.ts'
import { mediaTypes } from '../contract/media-types.ts'
import { prefersRepresentation, representationApplied } from '../contract/prefer.ts'
import type { Reader } from '../database/database.ts'
import { csvHeaders, prefersCsv, sendCsv } from '../http/bodies/csv.ts'
import { operation } from '../http/described-route.ts'
import { maskAccount } from '../http/masked-accounts.ts'
import { metadataRoutes } from '../http/metadata.ts'
import type { ApiContext, App } from '../http/server/server.ts'
import { read, withIdempotency } from '../http/with-idempotency.ts'
import type { ProblemName } from '../kernel/errors.ts'
import { Id } from '../kernel/ids.ts'
import * as metadata from '../metadata/metadata.ts'
import { auditOf } from './audit.ts'
import { columns } from './fields.ts'
import { fileOf, template } from './file.ts'
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
const params = Type.Object({ memberId: Id('member') })
const representation = { description: 'with its metadata.', schema: MemberWithMetadata }
const refusals: ProblemName[] = ['MemberNotFound', 'MemberAlreadyInvited', 'InvalidUpdateMemberPayload']

export function memberRoutes(app: App, context: ApiContext): void {
  const { db } = context
  metadataRoutes(app, context, {
    kind: 'member',
    names: { id: 'Member', summary: 'a member' },
    ...{ tag, params, path: '/v1/members/:memberId', problem: 'MemberNotFound' },
    scopes: { read: 'members:read', write: 'members:write' },
    idOf: ({ memberId }) => memberId,
    requireKnown: (reader, { partnerId, params: { memberId } }) =>
      members.requireMember(reader, { partnerId, memberId }),
  })

  app.post(
    '/v1/members',
    {
      config: { scope: 'members:write' },
      schema: operation({
        id: 'inviteMember',
        tag,
        summary: 'Invite a member',
        description:
          'The member is `invited`, or `active` at once if the partner activates members automatically. The e-mail must be unique among active and invited members, the `workerId` among all members.',
        body: NewMember,
        success: { status: 201, description: 'The new member.', schema: Member, representation },
        problems: ['MemberAlreadyInvited', 'InvalidAddMemberPayload'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, body, now } = request
        const member = await members.invite(tx, { partner, body, now })
        const audit = auditOf('member.invite', { before: undefined, after: member })
        return { status: 201, ...(await answerOf(tx, request, member)), resourceId: member.id, audit }
      }),
  )

  app.get(
    '/v1/members',
    {
      config: { scope: 'members:read' },
      schema: operation({
        id: 'getMembers',
        tag,
        summary: 'List members',
        description:
          'Newest first. A filter may be repeated (up to 100 times) and matches any of its values; a member must match every filter. With `accept: text/csv`, returns all matching members as a file, oldest first, ignoring `skip` and `take`. With `statuses=active&statuses=invited` the file is the complete list: uploading it unedited to `PUT /v1/members/jobs/csv` or `/v2/…` changes nothing.',
        query: MemberQuery,
        success: {
          status: 200,
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
      }),
    },
    async (request, reply) => {
      const { skip: _skip, take: _take, after: _after, ...filter } = request.query
      const asked = { partnerId: request.partner.id, filter }
      reply.header('vary', 'accept')
      if (prefersCsv(request.headers.accept)) {
        const pages = members.listAll(db, asked)
        return sendCsv(request, reply, {
          name: 'members.csv',
          parts: fileOf(request.user === undefined ? pages : masked(pages)),
        })
      }
      return await read(db, request, reply, async reader => {
        const page = pageOf(request.query)
        const found = await members.list(reader, { ...asked, page, cursor: cursorOf(request.query) })
        const total = await members.count(reader, asked)
        const { bodies, headers } = await answersOf(reader, request, found)
        return { status: 200, body: { members: bodies, total, ...page }, headers }
      })
    },
  )

  // Public: the person who fills in the template has no API key.
  app.get('/members-template.csv', async (_request, reply) =>
    reply.headers(csvHeaders('members-template.csv')).send(template),
  )
  app.get('/members-template.xlsx', async (_request, reply) =>
    reply
      .type(mediaTypes.xlsx)
      .header('content-disposition', 'attachment; filename="members-template.xlsx"')
      .send(createReadStream(new URL('template.xlsx', import.meta.url))),
  )

  app.get(
    '/v1/members/:memberId',
    {
      config: { scope: 'members:read' },
      schema: operation({
        id: 'getMember',
        tag,
        summary: 'Get a member',
        params,
        success: { status: 200, description: 'The member.', schema: Member, representation },
        problems: ['MemberNotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { memberId } = request.params
        const member = await members.find(reader, { partnerId: request.partner.id, memberId })
        return { status: 200, ...(await answerOf(reader, request, member)) }
      }),
  )

  app.patch(
    '/v1/members/:memberId',
    {
      config: { scope: 'members:write' },
      schema: operation({
        id: 'updateMember',
        tag,
        summary: 'Update a member',
        description:
          'Changes the given fields; null removes a value. The e-mail can change only while the member is `invited`. An inactive member stays inactive.',
        params,
        body: MemberUpdate,
        success: { status: 200, description: 'The updated member.', schema: Member, representation },
        problems: refusals,
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, now, body: update } = request
        const { memberId } = request.params
        const updated = await members.change(tx, { partner, command: { type: 'Update', memberId, update }, now })
        const audit = auditOf('member.update', updated)
        return { status: 200, ...(await answerOf(tx, request, updated.after)), resourceId: memberId, audit }
      }),
  )

  app.put(
    '/v1/members/:memberId',
    {
      config: { scope: 'members:write' },
      schema: operation({
        id: 'replaceMember',
        tag,
        summary: 'Replace a member',
        description:
          'Replaces the whole profile: fields that are left out are removed. Reinstates an inactive member as `invited`, or as `active` if the partner activates members automatically. The e-mail of an active member cannot change.',
        params,
        body: NewMember,
        success: { status: 200, description: 'The member after the change.', schema: Member, representation },
        problems: refusals,
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, body, now } = request
        const { memberId } = request.params
        const replaced = await members.change(tx, { partner, command: { type: 'Replace', memberId, body }, now })
        const audit = auditOf('member.replace', replaced)
        return { status: 200, ...(await answerOf(tx, request, replaced.after)), resourceId: memberId, audit }
      }),
  )

  app.delete(
    '/v1/members/:memberId',
    {
      config: { scope: 'members:write' },
      schema: operation({
        id: 'removeMember',
        tag,
        summary: 'Remove a member',
        description:
          'Offboards the member, who becomes `inactive` and can no longer withdraw; the books are kept. Idempotent.',
        params,
        success: { status: 200, description: 'The member is inactive.', schema: MemberRemoved },
        problems: ['MemberNotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, now } = request
        const { memberId } = request.params
        const offboarded = await members.change(tx, { partner, command: { type: 'Offboard', memberId }, now })
        const audit = auditOf('member.offboard', offboarded)
        return { status: 200, body: { message: 'OK' }, resourceId: memberId, audit }
      }),
  )

  app.post(
    '/v1/members/:memberId/activate',
    {
      config: { scope: 'members:write' },
      schema: operation({
        id: 'activateMember',
        tag,
        summary: 'Activate a member',
        description:
          'Activates an invited member, who can then withdraw. Idempotent; an inactive member is a `Conflict`.',
        params,
        success: { status: 200, description: 'The active member.', schema: Member, representation },
        problems: ['MemberNotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, now } = request
        const { memberId } = request.params
        const activated = await members.change(tx, { partner, command: { type: 'Activate', memberId }, now })
        const audit = auditOf('member.activate', activated)
        return { status: 200, ...(await answerOf(tx, request, activated.after)), resourceId: memberId, audit }
      }),
  )
}

/** The body of a member, and the headers, in the shape that the caller prefers. */
async function answerOf(db: Reader, request: FastifyRequest, member: members.Member) {
  const { bodies, headers } = await answersOf(db, request, [member])
  return { body: bodies[0], headers }
}

async function answersOf(db: Reader, request: FastifyRequest, found: members.Member[]) {
  if (!prefersRepresentation(request)) return { bodies: found.map(memberBody), headers: {} }
  const partnerId = request.partner.id
  const all = await metadata.findAll(
    db,
    found.map(({ id }) => ({ partnerId, resourceId: id })),
  )
  return {
    bodies: found.map(member => ({ ...memberBody(member), metadata: all.get(member.id) })),
    headers: representationApplied,
  }
}

/** The members as a user of the console sees them. */
async function* masked(pages: AsyncIterable<members.Member[]>): AsyncGenerator<members.Member[]> {
  for await (const page of pages)
    yield page.map(member => ({
      ...member,
      accountDetails: member.accountDetails === null ? null : maskAccount(member.accountDetails),
    }))
}

function memberBody(member: members.Member) {
  return { memberId: member.id, status: member.status, ...profileOf(member) }
}
