import type { IncomingHttpHeaders } from 'node:http'

/** Takes what the bank of a rail sends us when a payment changes. */
export type NotificationReceiver = {
  readonly rail: string
  /** The body of the answer to an accepted notification. */
  readonly answer: object
  /**
   * Whether the bank sent the body. Must take the same time for every wrong signature.
   * @param body as it was sent
   * @throws if the secrets cannot be read
   */
  isGenuine(body: Buffer, headers: IncomingHttpHeaders): Promise<boolean>
  /**
   * Records a genuine notification. Idempotent: banks send notifications again, and in any order.
   * @returns `malformed` if it cannot be read, so that the bank sees a failure
   */
  receive(body: Buffer): Promise<'accepted' | 'malformed'>
}
