import assert from 'node:assert/strict'
import {
  type ColumnRef,
  type FuncCall,
  type InsertStmt,
  type JoinExpr,
  type Node,
  parse,
  type RangeFunction,
  type RangeVar,
  type SelectStmt,
  type SubLink,
  type UpdateStmt,
  type WithClause,
} from 'libpg-query'

/** The columns of each table, in order, and whether its rows are distributed by their partner. */
export type Tables = Record<string, { columns: readonly string[]; isDistributed: boolean }>

/** A partner that each parameter named when the statement was sent: equal letters for equal partners, '*' for several. */
type Named = Record<number, string>

/**
 * Finds the distributed tables of a statement that are not restricted to one partner by a constant or a parameter, as 'table', or that are
 * restricted to different partners, as 'several partners'. Empty if a distributed PostgreSQL can route the statement to one node.
 *
 * Conclusions are those that PostgreSQL's planner draws too: from equalities of a condition or a join, through sub-selects, CTEs and what
 * other parts return. A sub-select that is run for each row of another has a constant only if it names one itself.
 *
 * @throws SqlError if the statement cannot be parsed
 */
export async function withoutPartner(text: string, tables: Tables, named: Named = {}): Promise<string[]> {
  const { stmts = [] } = await parse(text)
  return stmts.flatMap(({ stmt }) => (stmt === undefined ? [] : new Statement(tables, named).check(stmt)))
}

/** A column or another value, and the partners that it is known to be: letters of parameters, literals, or '?'. */
type Value = { known: Set<string>; range?: Range }

/** What a name in `from` stands for. */
type Range = { names: string[]; columns: Map<string, Value>; table?: string }

type Output = { name: string; value: Value | undefined }

/** @property isPerRow whether conditions on ranges of the outer scope do not reach the plan as constants */
type Scope = { ranges: Range[]; ctes: Map<string, Cte>; outer?: Scope | undefined; isPerRow: boolean }
type Cte = { outputs: Output[]; uses: Range[]; isOpen: boolean }

/** Where all of `from` are one known partner, so is `to`. */
type Rule = { from: Value[]; to: Value }

// The rows that an array of ids of one partner makes: a table is not restricted by them, but a row that is inserted is.
const inRows = 'rows of '

class Statement {
  readonly #tables: Tables
  readonly #named: Named
  readonly #rules: Rule[] = []
  readonly #scans: { table: string; value: Value; isInsert: boolean }[] = []

  constructor(tables: Tables, named: Named) {
    this.#tables = tables
    this.#named = named
  }

  check(statement: Node): string[] {
    this.#query(statement, { ranges: [], ctes: new Map(), isPerRow: false })
    this.#conclude()
    const partners = this.#scans.map(({ value, isInsert }) => {
      const known = [...value.known]
      return isInsert ? known.map(each => each.replace(inRows, '')) : known.filter(each => !each.startsWith(inRows))
    })
    const free = this.#scans.filter((_, index) => partners[index]?.length === 0).map(({ table }) => table)
    if (free.length > 0) return [...new Set(free)].sort()
    const exact = partners.filter(each => !each.includes('?'))
    const [first = []] = exact
    const isOne = exact.length === 0 || first.some(partner => exact.every(each => each.includes(partner)))
    return isOne ? [] : ['several partners']
  }

  #conclude(): void {
    let isChanged = true
    while (isChanged) {
      isChanged = false
      for (const { from, to } of this.#rules) {
        for (const partner of common(from)) {
          if (to.known.has(partner)) continue
          to.known.add(partner)
          isChanged = true
        }
      }
    }
  }

  #query(node: Node, outer: Scope): Output[] {
    if ('SelectStmt' in node) return this.#select(node.SelectStmt, outer)
    if ('InsertStmt' in node) return this.#insert(node.InsertStmt, outer)
    if ('UpdateStmt' in node) return this.#change(node.UpdateStmt, outer)
    if ('DeleteStmt' in node) {
      const { usingClause = [], ...rest } = node.DeleteStmt
      return this.#change({ ...rest, fromClause: usingClause }, outer)
    }
    if ('CopyStmt' in node) {
      const { relation, query } = node.CopyStmt
      if (query !== undefined) return this.#query(query, outer)
      const { relname = '' } = relation ?? {}
      if (this.#tables[baseOf(relname)]?.isDistributed)
        this.#scans.push({ table: relname, value: unknown(), isInsert: true })
      return []
    }
    if ('ExplainStmt' in node && node.ExplainStmt.query !== undefined) return this.#query(node.ExplainStmt.query, outer)
    assert(!('MergeStmt' in node), 'merge is not looked into: add it here')
    return []
  }

  #select(select: SelectStmt, outer: Scope): Output[] {
    const scope = this.#open(outer, select.withClause)
    const outputs = this.#body(select, scope)
    this.#subSelects([select.sortClause, select.limitCount, select.limitOffset], scope)
    this.#close(scope)
    return outputs
  }

  #body(select: SelectStmt, scope: Scope): Output[] {
    if (select.larg !== undefined && select.rarg !== undefined) return this.#union(select.larg, select.rarg, scope)
    if (select.valuesLists !== undefined) return this.#values(select.valuesLists, scope)
    for (const item of select.fromClause ?? []) this.#from(item, scope)
    this.#where(select.whereClause, scope, scope.ranges)
    this.#subSelects([select.targetList, select.groupClause, select.havingClause, select.distinctClause], scope)
    return this.#targets(select.targetList ?? [], scope)
  }

  #union(left: SelectStmt, right: SelectStmt, scope: Scope): Output[] {
    const [lefts, rights] = [left, right].map(arm => this.#select(arm, scope)) as [Output[], Output[]]
    return lefts.map(({ name, value }, index) => {
      const arms = [value, rights[index]?.value].filter(each => each !== undefined)
      const both: Value = unknown()
      if (arms.length === 2) this.#rules.push({ from: arms, to: both })
      for (const arm of arms) this.#rules.push({ from: [both], to: arm })
      return { name, value: both }
    })
  }

  #values(lists: Node[], scope: Scope): Output[] {
    const rows = lists.map(list => this.#valuesOf(itemsOf(list), scope))
    this.#subSelects(lists, scope)
    return (rows[0] ?? []).map((_, index) => {
      const each = rows.map(row => row[index]).filter(value => value !== undefined)
      const value: Value = unknown()
      if (each.length === rows.length) this.#rules.push({ from: each, to: value })
      return { name: `column${index + 1}`, value }
    })
  }

  #insert(insert: InsertStmt, outer: Scope): Output[] {
    const scope = this.#open(outer, insert.withClause)
    const target = this.#rangeOf(insert.relation, scope, { isInsert: true })
    const outputs = insert.selectStmt === undefined ? [] : this.#query(insert.selectStmt, scope)
    const columns = insert.cols?.map(nameOf) ?? [...target.columns.keys()]
    for (const [index, column] of columns.entries()) {
      const [from, to] = [outputs[index]?.value, target.columns.get(column)]
      if (from !== undefined && to !== undefined) this.#rules.push({ from: [from], to })
    }
    const { targetList, whereClause } = insert.onConflictClause ?? {}
    const excluded: Range = { names: ['excluded'], columns: target.columns }
    const conflict: Scope = { ranges: [target, excluded], ctes: scope.ctes, outer: scope.outer, isPerRow: false }
    this.#subSelects([targetList, whereClause], conflict)
    const returned = this.#targets(insert.returningClause?.exprs ?? [], { ...conflict, ranges: [target] })
    this.#subSelects([insert.returningClause?.exprs], { ...conflict, ranges: [target] })
    this.#close(scope)
    return returned
  }

  #change(update: UpdateStmt, outer: Scope): Output[] {
    const scope = this.#open(outer, update.withClause)
    scope.ranges.push(this.#rangeOf(update.relation, scope))
    for (const item of update.fromClause ?? []) this.#from(item, scope)
    this.#where(update.whereClause, scope, scope.ranges)
    const returning = update.returningClause?.exprs ?? []
    this.#subSelects([update.targetList, returning], scope)
    const outputs = this.#targets(returning, scope)
    this.#close(scope)
    return outputs
  }

  #open(outer: Scope, withClause: WithClause | undefined): Scope {
    const scope: Scope = { ranges: [], ctes: new Map(outer.ctes), outer, isPerRow: false }
    for (const node of withClause?.ctes ?? []) {
      assert('CommonTableExpr' in node)
      const { ctename = '', ctequery, aliascolnames, ctematerialized } = node.CommonTableExpr
      assert(ctequery !== undefined)
      const select = 'SelectStmt' in ctequery ? ctequery.SelectStmt : undefined
      const isOpen = select !== undefined && ctematerialized !== 'CTEMaterializeAlways' && !isClosed(select)
      const isRecursive = withClause?.recursive === true && select?.larg !== undefined
      if (isRecursive) {
        const outputs = renamed(this.#select(select.larg as SelectStmt, scope), aliascolnames)
        scope.ctes.set(ctename, { outputs, uses: [], isOpen: false })
        this.#select(select.rarg as SelectStmt, scope)
      } else {
        const outputs = renamed(this.#query(ctequery, scope), aliascolnames)
        scope.ctes.set(ctename, { outputs, uses: [], isOpen })
      }
    }
    return scope
  }

  /** A condition on a CTE that is used once restricts its tables too. */
  #close(scope: Scope): void {
    for (const [name, { outputs, uses, isOpen }] of scope.ctes) {
      if (scope.outer?.ctes.get(name) === scope.ctes.get(name)) continue
      const [use] = uses
      if (isOpen && uses.length === 1 && use !== undefined) this.#pushDown(use, outputs)
    }
  }

  #pushDown(range: Range, outputs: Output[]): void {
    for (const [index, value] of [...range.columns.values()].entries()) {
      const inner = outputs[index]?.value
      if (inner !== undefined) this.#rules.push({ from: [value], to: inner })
    }
  }

  /** Adds an item of `from` to the scope, and returns its ranges. */
  #from(node: Node, scope: Scope): Range[] {
    if ('JoinExpr' in node) return this.#join(node.JoinExpr, scope)
    if ('RangeVar' in node) {
      const range = this.#rangeOf(node.RangeVar, scope)
      scope.ranges.push(range)
      return [range]
    }
    if ('RangeFunction' in node) {
      this.#subSelects([node.RangeFunction.functions], scope)
      const range = this.#functions(node.RangeFunction)
      scope.ranges.push(range)
      return [range]
    }
    assert('RangeSubselect' in node, `${Object.keys(node)} in from is not looked into: add it here`)
    const { lateral, subquery, alias } = node.RangeSubselect
    assert(subquery !== undefined && 'SelectStmt' in subquery)
    const visible: Scope = lateral
      ? { ...scope, ranges: [...scope.ranges], isPerRow: !isJoinable(subquery.SelectStmt) }
      : { ...scope, ranges: [], isPerRow: false }
    const outputs = renamed(this.#select(subquery.SelectStmt, visible), alias?.colnames)
    const range = this.#rangeWith(outputs, alias?.aliasname)
    if (!isClosed(subquery.SelectStmt)) this.#pushDown(range, outputs)
    scope.ranges.push(range)
    return [range]
  }

  #join({ larg, rarg, jointype, quals, usingClause = [] }: JoinExpr, scope: Scope): Range[] {
    assert(larg !== undefined && rarg !== undefined)
    const [left, right] = [this.#from(larg, scope), this.#from(rarg, scope)]
    const restricted = { JOIN_LEFT: right, JOIN_RIGHT: left, JOIN_FULL: [] as Range[] }[jointype as string]
    const reached = restricted ?? [...left, ...right]
    this.#where(quals, scope, reached)
    for (const name of usingClause.map(textOf)) {
      const [a, b] = [left, right].map(ranges => ranges.find(range => range.columns.has(name))?.columns.get(name))
      if (a !== undefined && b !== undefined) this.#equate(a, b, reached)
    }
    return [...left, ...right]
  }

  #rangeOf(relation: RangeVar | undefined, scope: Scope, { isInsert = false } = {}): Range {
    const { relname = '', schemaname, alias } = relation ?? {}
    const cte = schemaname === undefined ? scope.ctes.get(relname) : undefined
    if (cte !== undefined && !isInsert) {
      const range = this.#rangeWith(renamed(cte.outputs, alias?.colnames), alias?.aliasname ?? relname)
      cte.uses.push(range)
      return range
    }
    const table = baseOf(relname)
    const known = schemaname === undefined || schemaname === 'public' ? this.#tables[table] : undefined
    const range: Range = { names: [alias?.aliasname ?? relname], columns: new Map(), table }
    for (const column of known?.columns ?? []) range.columns.set(column, { known: new Set(), range })
    const value = range.columns.get('partner_id')
    if (known?.isDistributed && value !== undefined) this.#scans.push({ table, value, isInsert })
    return range
  }

  #rangeWith(outputs: Output[], name: string | undefined): Range {
    const range: Range = { names: name === undefined ? [] : [name], columns: new Map() }
    for (const [index, { name, value }] of outputs.entries()) {
      const column: Value = { known: new Set(), range }
      range.columns.set(range.columns.has(name) ? `${name} ${index}` : name, column)
      if (value !== undefined) this.#rules.push({ from: [value], to: column })
    }
    return range
  }

  #functions({ functions = [], alias }: RangeFunction): Range {
    const range: Range = { names: alias?.aliasname === undefined ? [] : [alias.aliasname], columns: new Map() }
    const columns = functions.flatMap(item => {
      const [call] = itemsOf(item)
      if (call === undefined || !('FuncCall' in call)) return [unknown()]
      const { funcname = [], args = [] } = call.FuncCall
      if (range.names.length === 0) range.names.push(textOf(funcname.at(-1)))
      if (textOf(funcname.at(-1)) !== 'unnest') return [unknown()]
      return args.map((arg): Value => {
        const bare = withoutCast(arg)
        const partner = 'ParamRef' in bare ? this.#named[bare.ParamRef.number ?? 0] : undefined
        return { known: new Set(partner === undefined || partner === '*' ? [] : [inRows + partner]) }
      })
    })
    const names = alias?.colnames?.map(textOf) ?? []
    // A function of one column names it as itself.
    const [only] = range.names
    for (const [index, value] of columns.entries()) {
      range.columns.set(names[index] ?? (columns.length === 1 ? (only ?? '') : `column ${index}`), value)
    }
    for (const name of names.slice(columns.length)) range.columns.set(name, unknown())
    return range
  }

  #where(condition: Node | undefined, scope: Scope, reached: readonly Range[]): void {
    for (const part of conjuncts(condition)) {
      if ('A_Expr' in part) {
        const { kind, name = [], lexpr, rexpr } = part.A_Expr
        const isEqual = textOf(name[0]) === '=' && (kind === 'AEXPR_OP' || kind === 'AEXPR_IN')
        if (isEqual && lexpr !== undefined && rexpr !== undefined) {
          const rights = itemsOf(rexpr)
          if (kind === 'AEXPR_OP' || rights.length === 1) {
            const [lefts, others] = [itemsOf(lexpr), rights].map(items => this.#valuesOf(items, scope)) as Value[][]
            for (const [index, left] of (lefts ?? []).entries()) {
              const right = others?.[index]
              if (right !== undefined) this.#equate(left, right, reached)
            }
          }
        }
        this.#subSelects([lexpr, rexpr], scope)
      } else if ('SubLink' in part) this.#semiJoin(part.SubLink, scope, reached)
      else if (isNotExists(part)) this.#semiJoin(part.BoolExpr.args[0].SubLink, scope, [])
      else this.#subSelects([part], scope)
    }
  }

  /** `exists` and `in` become joins, so that conditions reach both sides; `not exists` becomes an outer join. */
  #semiJoin({ subLinkType, subselect, testexpr, operName }: SubLink, scope: Scope, reached: readonly Range[]): void {
    assert(subselect !== undefined)
    const isIn = subLinkType === 'ANY_SUBLINK' && operName === undefined
    const isJoin =
      'SelectStmt' in subselect && (subLinkType === 'EXISTS_SUBLINK' ? subselect.SelectStmt.op === 'SETOP_NONE' : isIn)
    const outputs = this.#query(subselect, { ...scope, isPerRow: !isJoin })
    if (testexpr === undefined) return
    this.#subSelects([testexpr], scope)
    if (!isIn) return
    for (const [index, value] of this.#valuesOf(itemsOf(testexpr), scope).entries()) {
      const inner = outputs[index]?.value
      if (inner === undefined) continue
      this.#equate(value, inner, [...reached, ...(inner.range === undefined ? [] : [inner.range])])
    }
  }

  /** Sub-selects anywhere else are run for each row, or once before: conditions outside do not reach them. */
  #subSelects(parts: unknown, scope: Scope): void {
    if (typeof parts !== 'object' || parts === null) return
    if ('SubLink' in parts) {
      const { subselect, testexpr } = parts.SubLink as SubLink
      if (subselect !== undefined) this.#query(subselect, { ...scope, isPerRow: true })
      this.#subSelects(testexpr, scope)
      return
    }
    for (const part of Object.values(parts)) this.#subSelects(part, scope)
  }

  #equate(a: Value, b: Value, reached: readonly Range[]): void {
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const) {
      if (to.range !== undefined && reached.includes(to.range)) this.#rules.push({ from: [from], to })
    }
  }

  #targets(targets: Node[], scope: Scope): Output[] {
    return targets.flatMap((target): Output[] => {
      assert('ResTarget' in target && target.ResTarget.val !== undefined)
      const { name, val } = target.ResTarget
      const bare = withoutCast(val)
      if (!('ColumnRef' in bare)) return [{ name: name ?? '', value: this.#valueOf(bare, scope) }]
      const fields = bare.ColumnRef.fields ?? []
      const last = fields.at(-1)
      if (last === undefined || !('A_Star' in last)) {
        return [{ name: name ?? textOf(last), value: this.#column(bare.ColumnRef, scope) }]
      }
      const of = fields.length > 1 ? textOf(fields.at(-2)) : undefined
      return scope.ranges
        .filter(range => of === undefined || range.names.includes(of))
        .flatMap(range => [...range.columns].map(([name, value]) => ({ name, value })))
    })
  }

  #valuesOf(nodes: Node[], scope: Scope): Value[] {
    return nodes.map(node => this.#valueOf(node, scope) ?? unknown())
  }

  #valueOf(node: Node, scope: Scope): Value | undefined {
    const bare = withoutCast(node)
    if ('ColumnRef' in bare) return this.#column(bare.ColumnRef, scope)
    if ('ParamRef' in bare) {
      const partner = this.#named[bare.ParamRef.number ?? 0] ?? '?'
      return { known: new Set(partner === '*' ? [] : [partner]) }
    }
    if ('A_Const' in bare) return { known: new Set([bare.A_Const.sval?.sval ?? '?']) }
    return undefined
  }

  #column({ fields = [] }: ColumnRef, scope: Scope): Value | undefined {
    const [name, of] = [textOf(fields.at(-1)), fields.length > 1 ? textOf(fields.at(-2)) : undefined]
    const found = scope.ranges.find(range => (of === undefined || range.names.includes(of)) && range.columns.has(name))
    if (found !== undefined) return found.columns.get(name)
    const { outer } = scope
    return outer === undefined || outer.isPerRow ? undefined : this.#column({ fields }, outer)
  }
}

const unknown = (): Value => ({ known: new Set() })

/** The partners that all of the values are; '?' may be any. */
function common(values: Value[]): string[] {
  if (values.some(({ known }) => known.size === 0)) return []
  const exact = values.filter(({ known }) => !known.has('?'))
  const [first] = exact
  if (first === undefined) return ['?']
  return [...first.known].filter(partner => exact.every(({ known }) => known.has(partner)))
}

/** Whether conditions outside do not reach into a sub-select: they would change which rows it counts. */
const isClosed = (select: SelectStmt) =>
  select.limitCount !== undefined || select.limitOffset !== undefined || select.windowClause !== undefined

/** Whether a lateral sub-select becomes a join with the ranges that it refers to. */
const isJoinable = (select: SelectStmt) =>
  !isClosed(select) &&
  select.op === 'SETOP_NONE' &&
  select.groupClause === undefined &&
  select.distinctClause === undefined &&
  !hasAggregate(select.targetList)

const aggregates = /^(count|sum|min|max|avg|every|bool_(and|or)|(array|string|jsonb?|jsonb?_object)_agg)$/

function hasAggregate(part: unknown): boolean {
  if (typeof part !== 'object' || part === null || 'SubLink' in part) return false
  if ('FuncCall' in part && aggregates.test(textOf((part.FuncCall as FuncCall).funcname?.at(-1)))) return true
  return Object.values(part).some(hasAggregate)
}

/** Partitions count as their table. */
const baseOf = (table: string) => table.replace(/_(default|\d{4}_\d{2})$/, '')

const renamed = (outputs: Output[], names: Node[] | undefined): Output[] =>
  outputs.map((output, index) => {
    const name = names?.[index]
    return name === undefined ? output : { ...output, name: textOf(name) }
  })

function conjuncts(condition: Node | undefined): Node[] {
  if (condition === undefined) return []
  if ('BoolExpr' in condition && condition.BoolExpr.boolop === 'AND_EXPR') {
    return (condition.BoolExpr.args ?? []).flatMap(conjuncts)
  }
  return [condition]
}

function isNotExists(node: Node): node is { BoolExpr: { args: [{ SubLink: SubLink }] } } {
  if (!('BoolExpr' in node) || node.BoolExpr.boolop !== 'NOT_EXPR') return false
  const [arg] = node.BoolExpr.args ?? []
  return arg !== undefined && 'SubLink' in arg && arg.SubLink.subLinkType === 'EXISTS_SUBLINK'
}

const withoutCast = (node: Node): Node =>
  'TypeCast' in node && node.TypeCast.arg !== undefined
    ? withoutCast(node.TypeCast.arg)
    : 'CollateClause' in node && node.CollateClause.arg !== undefined
      ? withoutCast(node.CollateClause.arg)
      : node

const itemsOf = (node: Node): Node[] =>
  'List' in node ? (node.List.items ?? []) : 'RowExpr' in node ? (node.RowExpr.args ?? []) : [node]

const textOf = (node: Node | undefined): string =>
  node !== undefined && 'String' in node ? (node.String.sval ?? '') : ''

const nameOf = (node: Node): string => ('ResTarget' in node ? (node.ResTarget.name ?? '') : '')
