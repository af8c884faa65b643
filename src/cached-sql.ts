import { CompiledQuery, type RawBuilder } from 'kysely'
import { type Reader, sql } from './db.ts'

/**
 * Like `sql`, for what runs all the time: its text is put together once, and from then on only its values are collected.
 * Parts of it may be fixed SQL themselves, or `sql` that is the same object each time; they make texts of their own.
 */
export function cachedSql<Row = unknown>(strings: TemplateStringsArray, ...values: unknown[]): FixedSql<Row> {
  return new FixedSql(strings, values)
}

/** Where each part of a text is written: the same parts are the same text. */
type Shape = (TemplateStringsArray | RawBuilder<unknown>)[]

// By the outermost part. What has an optional part has a text with it, and one without.
const texts = new Map<TemplateStringsArray, { shape: Shape; text: string }[]>()

// With more it is a part that is made anew each time, whose texts would fill the memory.
const variantsMax = 8

class FixedSql<Row> {
  readonly #strings: TemplateStringsArray
  readonly #values: unknown[]

  constructor(strings: TemplateStringsArray, values: unknown[]) {
    this.#strings = strings
    this.#values = values
  }

  async execute(db: Reader): Promise<{ rows: Row[] }> {
    const shape: Shape = []
    const parameters: unknown[] = []
    this.#collect(shape, parameters)
    return await db.executeQuery<Row>(CompiledQuery.raw(this.#textOf(shape, db), parameters))
  }

  #collect(shape: Shape, parameters: unknown[]): void {
    shape.push(this.#strings)
    for (const value of this.#values) {
      if (value instanceof FixedSql) value.#collect(shape, parameters)
      else if (isSql(value)) shape.push(value)
      else parameters.push(value)
    }
  }

  #textOf(shape: Shape, db: Reader): string {
    const variants = texts.get(this.#strings) ?? []
    const known = variants.find(variant => isSame(variant.shape, shape))
    if (known !== undefined) return known.text
    if (variants.length === variantsMax) throw new Error('A part of fixed SQL is made anew each time')
    const text = this.#toSql().compile(db).sql
    texts.set(this.#strings, [...variants, { shape, text }])
    return text
  }

  #toSql(): RawBuilder<unknown> {
    return sql(this.#strings, ...this.#values.map(value => (value instanceof FixedSql ? value.#toSql() : value)))
  }
}

function isSql(value: unknown): value is RawBuilder<unknown> {
  return typeof value === 'object' && value !== null && 'isRawBuilder' in value
}

function isSame(one: Shape, other: Shape): boolean {
  return one.length === other.length && one.every((part, index) => part === other[index])
}
