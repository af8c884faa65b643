/** Options of one call. */
export type CallOptions = {
  /** Your own key for the write, for example the id of the row that records it. By default, the SDK generates a key for each call. */
  idempotencyKey?: string | undefined
  signal?: AbortSignal | undefined
  /** Time limit of one attempt. */
  timeoutMs?: number | undefined
  /** Attempts after the first. */
  retriesMax?: number | undefined
  headers?: Record<string, string> | undefined
}

/** A response with its status, headers and request id. */
export type ApiResponse<T> = {
  body: T
  status: number
  headers: Headers
  /** Give this id to the operator when you report a problem. */
  requestId: string
  /** Whether the service had already processed the idempotency key, so that this is the stored response. */
  isReplayed: boolean
  /** The number of times the request was sent. */
  attempts: number
}

/** A promise of the response's body. The request is sent at once, even if the promise is never awaited. */
export class Call<T> implements Promise<T> {
  readonly [Symbol.toStringTag] = 'Call'
  protected readonly response: Promise<ApiResponse<T>>

  constructor(response: Promise<ApiResponse<T>>) {
    this.response = response
  }

  /** The body with status, headers and request id. */
  withResponse(): Promise<ApiResponse<T>> {
    return this.response
  }

  // biome-ignore lint/suspicious/noThenProperty: it is a promise.
  then<A = T, B = never>(
    onFulfilled?: ((body: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.response.then(({ body }) => body).then(onFulfilled, onRejected)
  }

  catch<B = never>(onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.then(undefined, onRejected)
  }

  finally(onFinally?: (() => void) | null): Promise<T> {
    return this.then().finally(onFinally)
  }
}

/** A list. Await it for the first page; iterate over it for every entry of every page. */
export class List<Page, Entry> extends Call<Page> implements AsyncIterable<Entry> {
  private readonly nextOf: (page: Page) => List<Page, Entry> | undefined
  /** The entries of one of its pages. */
  readonly entriesOf: (page: Page) => Entry[]

  constructor(
    response: Promise<ApiResponse<Page>>,
    {
      entriesOf,
      nextOf,
    }: { entriesOf: (page: Page) => Entry[]; nextOf: (page: Page) => List<Page, Entry> | undefined },
  ) {
    super(response)
    this.entriesOf = entriesOf
    this.nextOf = nextOf
  }

  async *pages(): AsyncGenerator<Page, void, undefined> {
    let list: List<Page, Entry> | undefined = this
    while (list !== undefined) {
      const page: Page = await list
      yield page
      list = list.nextOf(page)
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Entry, void, undefined> {
    for await (const page of this.pages()) yield* this.entriesOf(page)
  }
}
