/** What a caller may choose for one call. */
export type CallOptions = {
  /** Your own key for the write, for example the id of the row that records it. Otherwise the SDK makes one for this call. */
  idempotencyKey?: string | undefined
  signal?: AbortSignal | undefined
  /** How long one attempt may take. */
  timeoutMs?: number | undefined
  /** Attempts after the first. */
  retriesMax?: number | undefined
  headers?: Record<string, string> | undefined
}

/** An answer with what HTTP says about it. */
export type Answered<T> = {
  body: T
  status: number
  headers: Headers
  /** Quote it to the operator. */
  requestId: string
  /** Whether the service had processed the idempotency key before, and this is its stored answer. */
  isReplayed: boolean
  /** How often the request was sent. */
  attempts: number
}

/** The promise of an answer's body. The request is sent at once, also if it is never awaited. */
export class Call<T> implements Promise<T> {
  readonly [Symbol.toStringTag] = 'Call'
  protected readonly answered: Promise<Answered<T>>

  constructor(answered: Promise<Answered<T>>) {
    this.answered = answered
  }

  /** The body with status, headers and request id. */
  withResponse(): Promise<Answered<T>> {
    return this.answered
  }

  // biome-ignore lint/suspicious/noThenProperty: it is a promise.
  then<A = T, B = never>(
    onFulfilled?: ((body: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.answered.then(({ body }) => body).then(onFulfilled, onRejected)
  }

  catch<B = never>(onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.then(undefined, onRejected)
  }

  finally(onFinally?: (() => void) | null): Promise<T> {
    return this.then().finally(onFinally)
  }
}

/** A list: awaited, it is its first page; iterated, every entry of every page. */
export class List<Page, Entry> extends Call<Page> implements AsyncIterable<Entry> {
  private readonly nextOf: (page: Page) => List<Page, Entry> | undefined
  private readonly entriesOf: (page: Page) => Entry[]

  constructor(
    answered: Promise<Answered<Page>>,
    {
      entriesOf,
      nextOf,
    }: { entriesOf: (page: Page) => Entry[]; nextOf: (page: Page) => List<Page, Entry> | undefined },
  ) {
    super(answered)
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
