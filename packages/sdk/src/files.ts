/**
 * A file to upload: CSV or Excel. A `Blob` is streamed and can be sent again; in Node, `fs.openAsBlob` opens a file as a Blob.
 * A stream is sent once, so its upload is not retried.
 */
export type FileSource = string | Blob | Uint8Array | ReadableStream<Uint8Array>

export function isFile(value: unknown): value is FileSource {
  return typeof value === 'string' || value instanceof Uint8Array || value instanceof Blob || isStream(value)
}

export function isStream(value: unknown): value is ReadableStream<Uint8Array> {
  return value instanceof ReadableStream
}

const excel = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'

/** Distinguishes Excel from CSV by the zip signature in the first bytes. A stream counts as CSV. */
export async function mediaTypeOf(file: FileSource): Promise<string> {
  if (typeof file === 'string' || isStream(file)) return 'text/csv'
  const start = file instanceof Blob ? new Uint8Array(await file.slice(0, 2).arrayBuffer()) : file
  return start[0] === 0x50 && start[1] === 0x4b ? excel : 'text/csv'
}
