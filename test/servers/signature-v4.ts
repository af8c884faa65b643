import { createHash, createHmac } from 'node:crypto'

/** A request as the server has received it. */
export type Received = { method: string; path: string; query?: string; headers: Record<string, string>; body: string }

/**
 * Computes the signature of a request anew, from the service's side: independently of what signs in the program.
 * Source: AWS General Reference, "Signature Version 4 signing process"
 * @param request its path needs no encoding
 */
export function signatureOf(
  { method, path, query = '', headers, body }: Received,
  {
    secret,
    date,
    region,
    service,
    signed,
  }: Record<'secret' | 'date' | 'region' | 'service', string> & { signed: string[] },
): string {
  const canonical = [
    method,
    path,
    query,
    ...signed.map(name => `${name}:${(headers[name] ?? '').trim().replace(/ +/g, ' ')}`),
    '',
    signed.join(';'),
    createHash('sha256').update(body).digest('hex'),
  ].join('\n')
  const day = date.slice(0, 8)
  const scope = `${day}/${region}/${service}/aws4_request`
  const hash = createHash('sha256').update(canonical).digest('hex')
  const key = [day, region, service, 'aws4_request'].reduce(
    (previous, part) => createHmac('sha256', previous).update(part).digest(),
    Buffer.from(`AWS4${secret}`),
  )
  return createHmac('sha256', key).update(['AWS4-HMAC-SHA256', date, scope, hash].join('\n')).digest('hex')
}
