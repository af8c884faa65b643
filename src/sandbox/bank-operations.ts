import { named, type Words } from '../http/operation.ts'
import type { Currency } from '../kernel/money.ts'
import { addFault, listFaults } from '../payouts/channels/simulated/simulated-bank.ts'
import * as withdrawals from '../withdrawals/withdrawals.ts'
import { bankTasks, hasArrived, type InstructionName, instructBank } from './bank.ts'
import { answerMsMax, sandboxOperation } from './operation.ts'
import { BankFaults, BankReason, NewBankFault, SandboxWithdrawal } from './schema.ts'
import { runAtOnce } from './tasks-at-once.ts'

const submitSandboxWithdrawal = instruction('submit', {
  summary: 'Submit a withdrawal',
  description:
    'Ends the hold: the withdrawal is submitted, and the bank reports nothing about it until it is instructed to pay, fail or return it.',
})

const paySandboxWithdrawal = instruction('pay', {
  summary: 'Pay a withdrawal',
  description: 'The bank reports the withdrawal as paid; the withdrawal is submitted first.',
})

const failSandboxWithdrawal = instruction('fail', {
  summary: 'Fail a withdrawal',
  description:
    'The bank refuses the withdrawal, and the member gets the money back; the withdrawal is submitted first.',
})

const returnSandboxWithdrawal = instruction('return', {
  summary: 'Return a withdrawal',
  description:
    'The bank sends the withdrawal back, and the member gets the money back; the withdrawal is submitted and paid first.',
})

const holdSandboxWithdrawal = instruction('hold', {
  summary: 'Keep the bank silent about a withdrawal',
  description: 'The bank accepts the payment when its hold ends, and reports nothing about it until instructed.',
})

/** An operation that instructs the simulated bank about one withdrawal. */
function instruction(name: InstructionName, words: Words) {
  return sandboxOperation({
    route: `POST /v1/sandbox/withdrawals/:withdrawalId/${name}`,
    scope: 'pay:write',
    answerMsMax,
    sdk: `sandbox.withdrawals.${name}`,
    ...words,
    body: BankReason,
    success: {
      description: 'The withdrawal. Its status is an earlier one if the bank did not get that far.',
      schema: SandboxWithdrawal,
    },
    async start(tx, { partner, params, body, now, context }) {
      const partnerId = partner.id
      const instructed = { partnerId, withdrawalId: params.withdrawalId, name }
      const isSimulated = (currency: Currency) => context.bankOf(currency) === 'simulated'
      await instructBank(tx, { ...instructed, reason: body.reason, isSimulated, now })
      const isDone = () => hasArrived(context.db, instructed)
      return async () => await runAtOnce(context, { partnerId, names: bankTasks, isDone })
    },
    async respond(tx, { partner, params }) {
      const { withdrawalId } = params
      const { id, status, timeline } = await withdrawals.find(tx, { partnerId: partner.id, withdrawalId })
      return { body: { id, status, timeline }, resourceId: id }
    },
  })
}

const addSandboxBankFault = sandboxOperation({
  route: 'POST /v1/sandbox/bank/faults',
  scope: 'pay:write',
  sdk: 'sandbox.bank.addFault',
  summary: 'Queue a bank fault',
  description:
    'The next `count` payments of this partner (1 unless given) meet a fault at the simulated bank, after the faults that are already queued. A payment with an instruction keeps the instruction.',
  body: NewBankFault,
  success: { status: 201, description: 'The faults that are queued.', schema: BankFaults },
  async write(tx, { partner, body }) {
    await addFault(tx, { partnerId: partner.id, fault: body.next, count: body.count ?? 1 })
    return { body: { faults: await listFaults(tx, partner.id) } }
  },
})

export const bankOperations = named({
  submitSandboxWithdrawal,
  paySandboxWithdrawal,
  failSandboxWithdrawal,
  returnSandboxWithdrawal,
  holdSandboxWithdrawal,
  addSandboxBankFault,
})
