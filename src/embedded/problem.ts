/** Something stops the embedded PostgreSQL; the message is a sentence that an operator can act on. */
export class EmbeddedPostgresProblem extends Error {
  override name = 'EmbeddedPostgresProblem'
}
