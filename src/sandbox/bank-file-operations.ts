import { Type } from 'typebox'
import { afterQuery, cursorOf, pageFields, pageOf, pageQuery } from '../contract/list.ts'
import { fileHeaders } from '../http/bodies/csv.ts'
import { named } from '../http/operation.ts'
import { toWire } from '../kernel/money.ts'
import { namedObject, strictObject } from '../kernel/schemas.ts'
import type { FileRailSettings } from '../payouts/books/file-rail-settings.ts'
import * as partnerBatches from '../payouts/books/partner-batches.ts'
import { BankFile, BankFileAnswers } from './bank-file-schema.ts'
import { answerBatch } from './bank-files.ts'
import { sandboxOperation } from './operation.ts'

const BankFiles = namedObject('SandboxBankFiles', { bankFiles: Type.Array(BankFile), ...pageFields })

const getSandboxBankFiles = sandboxOperation({
  route: 'GET /v1/sandbox/bank-files',
  scope: 'pay:read',
  sdk: 'sandbox.bankFiles.list',
  summary: 'List your bank files',
  description:
    'The batches of payments that hold only withdrawals of this partner, newest first. Each batch is sent to the bank in one file. The list is empty unless the operator has configured a rail with files.',
  query: strictObject({ ...pageQuery, ...afterQuery('payoutBatch') }),
  success: { description: 'One page of batches.', schema: BankFiles },
  problems: ['NotFound'],
  async read(reader, { partner, query, context }) {
    const page = pageOf(query)
    const batches = await partnerBatches.list(reader, { partnerId: partner.id, page, cursor: cursorOf(query) })
    return { body: { bankFiles: batches.map(each => bankFileBody(each, context.fileRails)), ...page } }
  },
})

/** Plays the bank of a rail with files, so that the exchange of files can be rehearsed on a sandbox. */
const answerSandboxBankFile = sandboxOperation({
  route: 'POST /v1/sandbox/bank-files/:batchId/answers',
  scope: 'pay:write',
  // Room for as many outcomes as an answer may have, at up to 200 bytes each. Without white space, an outcome has about 90.
  bodyBytesMax: 2 * 1024 * 1024,
  sdk: 'sandbox.bankFiles.answer',
  summary: 'Write the answer of a bank to a file',
  description:
    'Returns the file in which the bank answers a sent batch. Nothing changes until the operator imports the file with `midmonth payouts import`, or puts it into the inbox of the rail. The same request returns the same bytes. A batch that holds a payment of another partner is `NotFound`, and a batch that is not sent yet is a `Conflict`; a kind of file that the rail does not read, and a batch of more than 10,000 payments, are `UnprocessableEntity`.',
  body: BankFileAnswers,
  success: {
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
  problems: ['UnprocessableEntity'],
  async read(reader, { partner, params, body, context }) {
    const { batchId } = params
    const rails = context.fileRails
    const file = await answerBatch(reader, { partnerId: partner.id, batchId, asked: body, rails })
    return { body: file.text, headers: fileHeaders(file.name, file.mediaType), resourceId: batchId }
  },
})

export const bankFileOperations = named({ getSandboxBankFiles, answerSandboxBankFile })

function bankFileBody(
  { id, debtor: _debtor, controlTotal, currency, ...batch }: partnerBatches.PartnerBatch,
  fileRails: readonly FileRailSettings[],
) {
  const rail = fileRails.find(({ name }) => name === batch.rail)
  return {
    batchId: id,
    ...batch,
    controlTotal: toWire({ amount: controlTotal, currency }),
    formats: Object.keys(rail?.format.answers ?? {}),
  }
}
