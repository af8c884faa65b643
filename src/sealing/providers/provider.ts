/** Wraps the keys of the installation, which are stored in the database only in wrapped form. */
export type KeyProvider = {
  /** Identifies the wrapping key without revealing it. */
  id: string
  wrap(key: Buffer): Promise<Buffer>
  /** @throws Error if the key was wrapped with another key, or changed since */
  unwrap(wrapped: Buffer): Promise<Buffer>
}
