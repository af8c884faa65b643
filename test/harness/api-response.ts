export type Call = {
  body?: unknown
  headers?: Record<string, string>
  key?: string | null | undefined
  raw?: string | Buffer
}
// biome-ignore lint/suspicious/noExplicitAny: every body is checked against openapi.json, and a test that reads a wrong field fails anyway.
export type ApiResponse = { status: number; headers: Record<string, string | undefined>; body: any; text: string }

/** The id of the resource in the `location` header. */
export function locatedId({ headers: { location } }: ApiResponse): string {
  const id = location?.split('/').at(-1)
  if (id === undefined) throw new Error('The response has no location header')
  return id
}
