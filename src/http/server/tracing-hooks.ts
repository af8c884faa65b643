import type { Tracing } from '../../tracing/tracing.ts'
import type { App } from './server.ts'

/** Traces each request. Added before all other hooks, and only if traces are on, so that they cost nothing otherwise. */
export function addTracingHooks(app: App, tracing: Tracing): void {
  app.addHook('onRequest', (request, reply, done) => {
    const { url, schema } = request.routeOptions
    const { method, headers, id } = request
    // The pattern, not the path: queries hold e-mail addresses.
    const attributes = {
      ...{ 'http.request.method': method, 'http.route': url, 'midmonth.operation': schema?.operationId },
      'midmonth.request_id': id,
    }
    const span = tracing.startRequest(`${method} ${url ?? 'unknown'}`, { headers, attributes })
    request.span = span
    reply.header('x-trace-id', span.spanContext().traceId)
    tracing.runIn(span, done)
  })
  app.addHook('onResponse', (request, reply, done) => {
    const status = reply.statusCode
    const attributes = { 'http.response.status_code': status, 'midmonth.partner_id': request.partner?.id }
    if (request.span !== undefined) tracing.endRequest(request.span, { status, attributes })
    done()
  })
}
