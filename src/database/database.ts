import {
  CamelCasePlugin,
  Kysely,
  type PluginTransformQueryArgs,
  type PluginTransformResultArgs,
  PostgresAdapter,
  PostgresDialect,
  type PostgresDialectConfig,
  type PostgresPool,
  type QueryResult,
  type RootOperationNode,
  type Selectable,
  sql,
  type Transaction,
  type UnknownRow,
} from 'kysely'
import type { Lanes } from '../kernel/lanes.ts'
import type { DB } from './tables.ts'

export { sql }

declare const purpose: unique symbol
type Database<Purpose extends string> = Kysely<DB> & { readonly [purpose]: Purpose }

/** The database outside a transaction, for ordinary operations. Only routes and tasks hold it. */
export type Db = Database<'ordinary operations'>

/**
 * The same database over the connections of batches: lock waits are short, statements are prepared, and plans use only indexes.
 * The compiler accepts neither `BatchDb` for `Db` nor `Db` for `BatchDb`.
 */
export type BatchDb = Database<'batches'>

/** One open transaction. Operations take it first and never open or keep one themselves. */
export type Tx = Transaction<DB>

/** A database or a transaction on it, for statements that may run inside or outside a transaction. */
export type Reader = Kysely<DB>

/** Rows of a table with some of their columns, or all. */
export type Columns<
  Table extends keyof DB,
  Names extends keyof Selectable<DB[Table]> = keyof Selectable<DB[Table]>,
> = Pick<Selectable<DB[Table]>, Names>

/** One page of a list: how many entries to skip, and how many to return. */
export type Page = { skip: number; take: number }

/**
 * Opens Kysely over a pool. Columns are snake_case in the database and camelCase in the program.
 * @param origin shared by everything that is opened on one database
 */
export function openKysely<D extends Db | BatchDb>(pool: PostgresPool, origin: Origin): D {
  // The purpose exists only for the compiler.
  return new Kysely<DB>({ dialect: new OriginDialect({ pool }, origin), plugins: [new ColumnNames()] }) as D
}

/** The database that connections lead to. @property lanes the lanes of the batches that run on it. @property closed aborts when it is closed */
export type Origin = { lanes: Lanes; readonly closed: AbortSignal }

/** The lanes that a database, or a transaction on it, was opened with. */
export function lanesOf(db: Reader): Lanes {
  return originOf(db).lanes
}

/** The same object for everything that was opened on one database, and its transactions. */
export function originOf(db: Reader): Origin {
  const { adapter } = db.getExecutor()
  if (!(adapter instanceof OriginAdapter)) throw new Error('The database was not opened by openKysely')
  return adapter.origin
}

// The adapter is the one part of Kysely that a database and its transactions share.
class OriginAdapter extends PostgresAdapter {
  readonly origin: Origin

  constructor(origin: Origin) {
    super()
    this.origin = origin
  }
}

class OriginDialect extends PostgresDialect {
  readonly #origin: Origin

  constructor(config: PostgresDialectConfig, origin: Origin) {
    super(config)
    this.#origin = origin
  }

  override createAdapter(): OriginAdapter {
    return new OriginAdapter(this.#origin)
  }
}

class ColumnNames extends CamelCasePlugin {
  // `sql` texts are already snake_case, and may have thousands of parameters: walking them would be a waste.
  override transformQuery(query: PluginTransformQueryArgs): RootOperationNode {
    return query.node.kind === 'RawNode' ? query.node : super.transformQuery(query)
  }

  // All rows of a result have the same columns, so each name is converted once. Values are left alone.
  override async transformResult({ result }: PluginTransformResultArgs): Promise<QueryResult<UnknownRow>> {
    const [first] = result.rows
    if (first === undefined) return result
    const columns = Object.keys(first).map(column => ({ column, name: this.camelCase(column) }))
    // The hot path names its columns so in SQL, which saves a second object per row.
    if (columns.every(({ column, name }) => column === name)) return result
    const renamed = (row: UnknownRow) => {
      const named: UnknownRow = {}
      for (const { column, name } of columns) named[name] = row[column]
      return named
    }
    return { ...result, rows: result.rows.map(renamed) }
  }
}
