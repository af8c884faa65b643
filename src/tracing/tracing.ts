import type { Context, Link, Span, SpanContext, Tracer } from '@opentelemetry/api'
import { type Settings, SettingsProblem } from '../config.ts'

type Api = typeof import('@opentelemetry/api')
type Attributes = Record<string, string | number | undefined>

/**
 * Spans of requests, batches, tasks and outgoing calls, by the API of OpenTelemetry. Where they go is up to the SDK that the operator
 * loads beside the program. Attributes hold names that the program declares, and ids: no personal data.
 */
export class Tracing {
  readonly #api: Api
  readonly #tracer: Tracer

  constructor(api: Api) {
    this.#api = api
    this.#tracer = api.trace.getTracer('midmonth')
  }

  /** Whether an SDK takes the spans. */
  get hasReceiver(): boolean {
    const span = this.#tracer.startSpan('start')
    span.end()
    return this.#api.isSpanContextValid(span.spanContext())
  }

  /** Starts the span of a request, in the trace that its caller's `traceparent` names. */
  startRequest(name: string, { headers, attributes }: { headers: object; attributes: Attributes }): Span {
    const { propagation, ROOT_CONTEXT, SpanKind } = this.#api
    const parent = propagation.extract(ROOT_CONTEXT, headers)
    return this.#tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parent)
  }

  /** Ends the span of a request. Only the service's own faults are errors. */
  endRequest(span: Span, { status, attributes }: { status: number; attributes: Attributes }): void {
    span.setAttributes(attributes)
    if (status >= 500) span.setStatus({ code: this.#api.SpanStatusCode.ERROR })
    span.end()
  }

  /** Makes the span the current one of everything that `work` starts. */
  runIn<T>(span: Span, work: () => T): T {
    const { context, trace } = this.#api
    return context.with(trace.setSpan(context.active(), span), work)
  }

  /** Runs work in a span, which is an error if the work throws: with the error's type, because its message can quote values. */
  async inSpan<T>(
    name: string,
    {
      kind = 'INTERNAL',
      attributes,
      links = [],
    }: { kind?: 'INTERNAL' | 'CLIENT'; attributes?: Attributes; links?: Link[] },
    work: () => Promise<T>,
  ): Promise<T> {
    const { context, SpanKind, SpanStatusCode, ROOT_CONTEXT } = this.#api
    // A batch or a task belongs to many requests or to none.
    const parent: Context = links.length > 0 ? ROOT_CONTEXT : context.active()
    const span = this.#tracer.startSpan(name, { kind: SpanKind[kind], attributes: attributes ?? {}, links }, parent)
    try {
      return await this.runIn(span, work)
    } catch (error) {
      span.setAttribute('error.type', error instanceof Error ? error.constructor.name : typeof error)
      span.setStatus({ code: SpanStatusCode.ERROR })
      throw error
    } finally {
      span.end()
    }
  }

  /** The current span, for a link to it from a span that outlives it. */
  current(): SpanContext | undefined {
    return this.#api.trace.getActiveSpan()?.spanContext()
  }

  /** The fields of a log line that name the current trace. */
  logFields(): { traceId?: string; spanId?: string } {
    const found = this.current()
    return found === undefined ? {} : { traceId: found.traceId, spanId: found.spanId }
  }
}

/** @returns undefined if traces are off @throws SettingsProblem if they are on, and the optional package is not installed */
export async function openTracing({ MIDMONTH_TRACES: traces }: Settings): Promise<Tracing | undefined> {
  if (traces === 'off') return undefined
  try {
    return new Tracing(await import('@opentelemetry/api'))
  } catch (error) {
    throw new SettingsProblem('MIDMONTH_TRACES requires the package @opentelemetry/api; install it', { cause: error })
  }
}
