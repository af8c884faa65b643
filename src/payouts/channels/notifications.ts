import type { IncomingHttpHeaders } from 'node:http'

/** Receives the notifications that a rail's bank sends when a payment changes. */
export type NotificationReceiver = {
  readonly rail: string
  /** The body of the answer to an accepted notification. */
  readonly answer: object
  /**
   * Whether the bank sent the body. Must take the same time for every wrong signature.
   * @param body the bytes as sent
   * @throws if the secrets cannot be read
   */
  isGenuine(body: Buffer, headers: IncomingHttpHeaders): Promise<boolean>
  /**
   * Records a genuine notification. Idempotent: banks repeat notifications and send them in any order.
   * @returns `malformed` if it cannot be read, so that the bank sees an error
   */
  receive(body: Buffer): Promise<'accepted' | 'malformed'>
}
