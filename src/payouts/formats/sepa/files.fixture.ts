import type { Answer, AnswersToWrite } from '../answers.ts'
import type { BatchToWrite, PaymentOrder, ReadBankFile, ReadLimits } from '../bank-files.ts'
import { readBankFile } from './read-bank-file.ts'

export type Part = ReturnType<ReadBankFile> extends AsyncGenerator<infer Each> ? Each : never

/** Limits that no test reaches by accident. */
const someLimits: ReadLimits = { bytesMax: 10_000_000, recordsMax: 100_000 }

/** Reads a file to its end. `chunkBytes` is how much of it arrives at a time. */
export async function partsOf(
  file: string | Uint8Array,
  { limits = someLimits, chunkBytes = 65_536 }: { limits?: ReadLimits; chunkBytes?: number } = {},
): Promise<Part[]> {
  return await all(readBankFile(chunksOf(Buffer.from(file), chunkBytes), limits))
}

async function* chunksOf(bytes: Uint8Array, chunkBytes: number): AsyncGenerator<Uint8Array> {
  for (let from = 0; from < bytes.length; from += chunkBytes) yield bytes.subarray(from, from + chunkBytes)
}

export async function textOf(chunks: AsyncIterable<string>): Promise<string> {
  return (await all(chunks)).join('')
}

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const value of values) found.push(value)
  return found
}

export async function* each<T>(all: readonly T[]): AsyncGenerator<T> {
  yield* all
}

export const someOrder: PaymentOrder = {
  reference: 'MMABCDEFGHIJKLMN',
  amount: 12_345n,
  account: { accountHolder: 'Zoë Müller', iban: 'DE89370400440532013000' },
}

/** A batch of these payments that adds up. */
export function batchOf(orders: readonly PaymentOrder[], changes: Partial<BatchToWrite> = {}): BatchToWrite {
  return {
    messageId: 'MMB7Q2ZKD3',
    createdAt: new Date('2026-03-02T08:30:15.250Z'),
    valueDate: '2026-03-03',
    currency: 'EUR',
    debtor: { name: 'Bäckerei Süß & Söhne', account: { accountHolder: '', iban: 'DE75512108001245126199' } },
    paymentCount: orders.length,
    controlTotal: orders.reduce((sum, { amount }) => sum + amount, 0n),
    isInstant: false,
    payments: each(orders),
    ...changes,
  }
}

export const someUkOrder: PaymentOrder = {
  reference: 'MMZYXWVUTSRQPONM',
  amount: 5_000n,
  account: { accountHolder: "Ada O'Neill", sortCode: '089999', accountNumber: '66374958' },
}

export function ukBatchOf(orders: readonly PaymentOrder[], changes: Partial<BatchToWrite> = {}): BatchToWrite {
  const account = { accountHolder: '', sortCode: '200000', accountNumber: '55779911' }
  return batchOf(orders, { currency: 'GBP', debtor: { name: 'Baker & Sons', account }, ...changes })
}

export function answersOf(answers: readonly Answer[], changes: Partial<AnswersToWrite> = {}): AnswersToWrite {
  return {
    messageId: 'BANK000001',
    createdAt: new Date('2026-03-03T09:00:00.000Z'),
    bookedOn: '2026-03-03',
    batchMessageId: 'MMB7Q2ZKD3',
    currency: 'EUR',
    account: { accountHolder: '', iban: 'DE75512108001245126199' },
    answers: each(answers),
    ...changes,
  }
}
