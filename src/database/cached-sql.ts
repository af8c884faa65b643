import { CompiledQuery, type RawBuilder, type RawNode } from 'kysely'
import { type Reader, sql } from './database.ts'

/**
 * Like `sql`, for the statements of the hot path: the text is compiled once, and later executions only collect the values.
 * A part may be cached SQL, a constant `sql` object, or a function that returns cached SQL for the database that executes the
 * statement. Each combination of parts has its own text.
 */
export function cachedSql<Row = unknown>(strings: TemplateStringsArray, ...values: unknown[]): CachedSql<Row> {
  return new CachedSql(strings, values)
}

/** The parts of a statement. Equal shapes have equal texts. */
type Shape = (TemplateStringsArray | RawBuilder<unknown>)[]

// The key is the outermost part. A statement with an optional part has two texts.
const texts = new Map<TemplateStringsArray, { shape: Shape; text: string }[]>()

// A statement with more variants has a part that is created for each execution, whose texts would fill the memory.
const variantsMax = 8

export class CachedSql<Row = unknown> {
  readonly #strings: TemplateStringsArray
  readonly #values: unknown[]

  constructor(strings: TemplateStringsArray, values: unknown[]) {
    this.#strings = strings
    this.#values = values
  }

  async execute(db: Reader): Promise<{ rows: Row[] }> {
    const shape: Shape = []
    const parameters: unknown[] = []
    this.#collect(db, { shape, parameters })
    return await db.executeQuery<Row>(CompiledQuery.raw(this.#textOf(shape, db), parameters))
  }

  /** Allows cached SQL within ordinary `sql`, which is then compiled each time, without the parts for one database. */
  toOperationNode(): RawNode {
    return this.#toSql(undefined).toOperationNode()
  }

  #collect(db: Reader, into: { shape: Shape; parameters: unknown[] }): void {
    into.shape.push(this.#strings)
    for (const value of this.#values) {
      const part = typeof value === 'function' ? value(db) : value
      if (part instanceof CachedSql) part.#collect(db, into)
      else if (isSql(part)) into.shape.push(part)
      else into.parameters.push(part)
    }
  }

  #textOf(shape: Shape, db: Reader): string {
    const variants = texts.get(this.#strings) ?? []
    const known = variants.find(variant => isSame(variant.shape, shape))
    if (known !== undefined) return known.text
    if (variants.length === variantsMax)
      throw new Error('A part of cached SQL is created for each execution; make it a constant')
    const text = this.#toSql(db).compile(db).sql
    texts.set(this.#strings, [...variants, { shape, text }])
    return text
  }

  #toSql(db: Reader | undefined): RawBuilder<unknown> {
    const partOf = (value: unknown) => {
      if (typeof value !== 'function') return value
      return db === undefined ? sql`` : value(db)
    }
    const parts = this.#values.map(partOf)
    return sql(this.#strings, ...parts.map(part => (part instanceof CachedSql ? part.#toSql(db) : part)))
  }
}

function isSql(value: unknown): value is RawBuilder<unknown> {
  return typeof value === 'object' && value !== null && 'isRawBuilder' in value
}

function isSame(one: Shape, other: Shape): boolean {
  return one.length === other.length && one.every((part, index) => part === other[index])
}
