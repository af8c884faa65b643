import { Type } from 'typebox'
import { afterQuery, cursorOf, pageFields, pageOf, pageQuery } from '../contract/list.ts'
import { fileHeaders } from '../http/bodies/csv.ts'
import type { App } from '../http/server/server.ts'
import { read } from '../http/with-idempotency.ts'
import { Id } from '../kernel/ids.ts'
import { toWire } from '../kernel/money.ts'
import type { FileRailSettings } from '../payouts/books/file-rail-settings.ts'
import * as partnerBatches from '../payouts/books/partner-batches.ts'
import type { AnswerFormat } from '../payouts/formats/answers.ts'
import { BankFile, BankFileAnswers } from './bank-file-schema.ts'
import { answerBatch } from './bank-files.ts'
import { type SandboxContext, sandboxOperation } from './operation.ts'

const BankFiles = Type.Object(
  { bankFiles: Type.Array(BankFile), ...pageFields },
  { title: 'SandboxBankFiles', additionalProperties: false },
)

// Room for as many outcomes as an answer may have, at up to 200 bytes each. Without white space, an outcome has about 90.
const bodyBytesMax = 2 * 1024 * 1024

/** Plays the bank of a rail with files, so that the exchange of files can be rehearsed on a sandbox. */
export function bankFileRoutes(
  app: App,
  { db }: SandboxContext,
  { rails }: { rails: readonly FileRailSettings[] },
): void {
  app.get(
    '/v1/sandbox/bank-files',
    {
      config: { scope: 'pay:read' },
      schema: sandboxOperation({
        id: 'getSandboxBankFiles',
        summary: 'List your bank files',
        description:
          'The batches of payments that hold only withdrawals of this partner, newest first. Each batch is sent to the bank in one file. The list is empty unless the operator has configured a rail with files.',
        query: Type.Object({ ...pageQuery, ...afterQuery('payoutBatch') }, { additionalProperties: false }),
        success: { status: 200, description: 'One page of batches.', schema: BankFiles },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const page = pageOf(request.query)
        const found = await partnerBatches.list(reader, {
          ...{ partnerId: request.partner.id, page },
          cursor: cursorOf(request.query),
        })
        return { status: 200, body: { bankFiles: found.map(bodyOf), ...page } }
      }),
  )

  app.post(
    '/v1/sandbox/bank-files/:batchId/answers',
    {
      bodyLimit: bodyBytesMax,
      config: { scope: 'pay:write' },
      schema: sandboxOperation({
        id: 'answerSandboxBankFile',
        summary: 'Write the answer of a bank to a file',
        description:
          'Returns the file in which the bank answers a sent batch. Nothing changes until the operator imports the file with `midmonth payouts import`, or puts it into the inbox of the rail. The same request returns the same bytes. A batch that holds a payment of another partner is `NotFound`, and a batch that is not sent yet is a `Conflict`; a kind of file that the rail does not read, and a batch of more than 10,000 payments, are `UnprocessableEntity`.',
        params: Type.Object({ batchId: Id('payoutBatch') }),
        body: BankFileAnswers,
        success: {
          status: 200,
          description: 'The file. `content-disposition` has its name.',
          xml: {
            description: 'A payment status report (`pain.002`) or a notification of entries (`camt.054`).',
            example: '<?xml version="1.0" encoding="UTF-8"?>\n<Document>…</Document>\n',
          },
          csv: {
            description: 'Returned Bacs credits, in the columns that the rail is configured to read.',
            example: 'Reference,Amount,Code\r\nMMABCDEFGHIJKLMN,50.00,B\r\n',
          },
        },
        problems: ['NotFound', 'UnprocessableEntity'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { partner, params, body: asked } = request
        const file = await answerBatch(reader, { partnerId: partner.id, batchId: params.batchId, asked, rails })
        const headers = fileHeaders(file.name, file.mediaType)
        return { status: 200, body: file.text, headers, resourceId: params.batchId }
      }),
  )

  function bodyOf({ id, debtor: _debtor, controlTotal, currency, sentAt, ...batch }: partnerBatches.PartnerBatch) {
    const rail = rails.find(({ name }) => name === batch.rail)
    return {
      batchId: id,
      ...batch,
      controlTotal: toWire({ amount: controlTotal, currency }),
      sentAt: sentAt?.toISOString() ?? null,
      formats: Object.keys(rail?.format.answers ?? {}) as AnswerFormat[],
    }
  }
}
