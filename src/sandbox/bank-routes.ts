import { Type } from 'typebox'
import type { App } from '../http/server/server.ts'
import { withIdempotency, withStartedWork } from '../http/with-idempotency.ts'
import { Id } from '../kernel/ids.ts'
import type { Currency } from '../kernel/money.ts'
import { addFault, listFaults } from '../payouts/channels/simulated/simulated-bank.ts'
import * as withdrawals from '../withdrawals/withdrawals.ts'
import { bankTasks, hasArrived, type InstructionName, instructBank } from './bank.ts'
import { answerMsMax, type SandboxContext, sandboxOperation } from './operation.ts'
import { BankFaults, BankReason, NewBankFault, SandboxWithdrawal } from './schema.ts'
import { runAtOnce } from './tasks-at-once.ts'

/** Instructs the simulated bank about one withdrawal, or about the next payments of the partner. */
export function bankRoutes(app: App, context: SandboxContext): void {
  const { db } = context
  const isSimulated = (currency: Currency) => context.bankOf(currency) === 'simulated'

  for (const [name, { summary, description }] of Object.entries(bankOperations)) {
    app.post(
      `/v1/sandbox/withdrawals/:withdrawalId/${name}`,
      {
        config: { scope: 'pay:write', answerMsMax },
        schema: sandboxOperation({
          id: `${name}SandboxWithdrawal`,
          summary,
          description,
          params: Type.Object({ withdrawalId: Id('withdrawal') }),
          body: BankReason,
          success: {
            status: 200,
            description: 'The withdrawal. Its status is an earlier one if the bank did not get that far.',
            schema: SandboxWithdrawal,
          },
          problems: ['NotFound'],
        }),
      },
      async (request, reply) => {
        const { partner, params, body, now: at } = request
        const asked = { partnerId: partner.id, withdrawalId: params.withdrawalId, name: name as InstructionName }
        return await withStartedWork(db, request, reply, {
          async start(tx) {
            await instructBank(tx, { ...asked, reason: body.reason, isSimulated, now: at })
            return async () =>
              await runAtOnce(context, {
                partnerId: partner.id,
                names: bankTasks,
                isDone: () => hasArrived(db, asked),
              })
          },
          async answer(tx) {
            const { id, status, timeline } = await withdrawals.find(tx, asked)
            const entries = timeline.map(entry => ({ ...entry, at: entry.at.toISOString() }))
            return { status: 200, body: { id, status, timeline: entries }, resourceId: id }
          },
        })
      },
    )
  }

  app.post(
    '/v1/sandbox/bank/faults',
    {
      config: { scope: 'pay:write' },
      schema: sandboxOperation({
        id: 'addSandboxBankFault',
        summary: 'Queue a bank fault',
        description:
          'The next `count` payments of this partner (1 unless given) meet a fault at the simulated bank, after the faults that are already queued. A payment with an instruction keeps the instruction.',
        body: NewBankFault,
        success: { status: 201, description: 'The faults that are queued.', schema: BankFaults },
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, body } = request
        await addFault(tx, { partnerId: partner.id, fault: body.next, count: body.count ?? 1 })
        return { status: 201, body: { faults: await listFaults(tx, partner.id) } }
      }),
  )
}

const bankOperations = {
  submit: {
    summary: 'Submit a withdrawal',
    description:
      'Ends the hold: the withdrawal is submitted, and the bank reports nothing about it until it is instructed to pay, fail or return it.',
  },
  pay: {
    summary: 'Pay a withdrawal',
    description: 'The bank reports the withdrawal as paid; the withdrawal is submitted first.',
  },
  fail: {
    summary: 'Fail a withdrawal',
    description:
      'The bank refuses the withdrawal, and the member gets the money back; the withdrawal is submitted first.',
  },
  return: {
    summary: 'Return a withdrawal',
    description:
      'The bank sends the withdrawal back, and the member gets the money back; the withdrawal is submitted and paid first.',
  },
  hold: {
    summary: 'Keep the bank silent about a withdrawal',
    description: 'The bank accepts the payment when its hold ends, and reports nothing about it until instructed.',
  },
} as const satisfies Record<InstructionName, { summary: string; description: string }>
