import { expectTypeOf, test } from 'vitest'
import type {
  ApiError,
  ApiResponse,
  IntentEventData,
  KnownApiError,
  List,
  Member,
  MemberId,
  MemberJobCreated,
  MemberJobPreview,
  Members,
  Midmonth,
  Money,
  WebhookEvent,
  WithdrawalDetails,
  WithdrawalId,
  WithdrawalIntentId,
} from '../src/index.ts'
import { gbp, id, MemberNotFoundError } from '../src/index.ts'

// Checked by `npm run typecheck`. The calls are never made.
const typesOf = (_: (midmonth: Midmonth) => unknown) => undefined

test('an id of one kind is not an id of another kind, and a text is not an id', () => {
  expectTypeOf<MemberId>().not.toExtend<WithdrawalId>()
  expectTypeOf<WithdrawalIntentId>().not.toExtend<WithdrawalId>()
  expectTypeOf<string>().not.toExtend<MemberId>()
  expectTypeOf<MemberId>().toExtend<string>()
  expectTypeOf(id('mem', 'mem_1')).toExtend<MemberId>()
  typesOf(midmonth => {
    const memberId: MemberId = 'mem_1'
    midmonth.members.get(memberId)
    // @ts-expect-error: a member id is not a withdrawal id
    midmonth.withdrawals.get(memberId)
    // @ts-expect-error: the text may be anything
    midmonth.members.get('mem_1' as string)
  })
})

test('bodies, queries and options are checked', () => {
  typesOf(midmonth => {
    midmonth.withdrawals.createIntent({ memberId: 'mem_1', amount: gbp('12.34') }, { idempotencyKey: 'k' })
    midmonth.members.list({ statuses: ['active'] }, { signal: AbortSignal.timeout(1), retriesMax: 0 })
    // @ts-expect-error: a number is not money
    midmonth.withdrawals.createIntent({ memberId: 'mem_1', amount: 1234 })
    // @ts-expect-error: unknown field
    midmonth.withdrawals.createIntent({ memberId: 'mem_1', amount: gbp('1'), fee: gbp('1') })
    // @ts-expect-error: unknown status
    midmonth.members.list({ statuses: ['gone'] })
    // @ts-expect-error: the body is required
    midmonth.withdrawals.complete()
    // @ts-expect-error: unknown currency
    const money: Money = { amount: 1, currency: 'GBX' }
    return money
  })
})

test('responses are typed as the fuller of two representations', () => {
  typesOf(async midmonth => {
    const call = midmonth.withdrawals.complete({ withdrawalIntentId: 'wi_1' })
    expectTypeOf(await call).toEqualTypeOf<WithdrawalDetails>()
    expectTypeOf(await call.withResponse()).toEqualTypeOf<ApiResponse<WithdrawalDetails>>()
    expectTypeOf((await call).id).toEqualTypeOf<WithdrawalId>()
    const list = midmonth.members.list()
    expectTypeOf(list).toEqualTypeOf<List<Members, Member>>()
    expectTypeOf(await list).toEqualTypeOf<Members>()
    for await (const member of list) expectTypeOf(member).toEqualTypeOf<Member>()
    expectTypeOf(await midmonth.members.export()).toEqualTypeOf<Response>()
    expectTypeOf(await midmonth.memberJobs.create({ actions: [] })).toEqualTypeOf<MemberJobCreated>()
    expectTypeOf(await midmonth.memberJobs.create({ actions: [] }, { dryRun: true })).toEqualTypeOf<MemberJobPreview>()
    expectTypeOf<Promise<Member>>(midmonth.members.get('mem_1'))
  })
})

test('errors are narrowed by class or code and have the fields of their code', () => {
  const error = {} as ApiError | KnownApiError
  if (error instanceof MemberNotFoundError)
    expectTypeOf(error.issues[0]?.memberId).toEqualTypeOf<MemberId | undefined>()
  const known = {} as KnownApiError
  if (known.code === 'AmountBelowLowerLimit')
    expectTypeOf(known.issues[0]?.lowerLimit).toEqualTypeOf<Money | undefined>()
  expectTypeOf<KnownApiError>().toExtend<ApiError>()
})

test('events are narrowed by type', () => {
  const event = {} as WebhookEvent
  if (event.type === 'intent.created') expectTypeOf(event.data).toEqualTypeOf<IntentEventData>()
  // @ts-expect-error: unknown event type
  if (event.type === 'intent.forgotten') return
  expectTypeOf(gbp('1').currency).toEqualTypeOf<'GBP'>()
})
