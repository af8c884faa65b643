/** How a table is stored. */
export type TableKind = 'csv' | 'xlsx'

/**
 * The value of one cell. In CSV it is always text, '' if empty. In Excel it is the stored value: text, a number, a boolean,
 * a calendar day, or null if empty; a formula's error is its text, such as '#N/A'.
 */
export type Cell = string | number | boolean | { day: string } | null

/**
 * @property row as a spreadsheet counts: the header is row 1, blank rows count, and a line break within quotes does not
 * @property fault the fault of this row, for the author of the file; the cells of the row may be truncated
 */
export type Row = { row: number; cells: Cell[]; fault?: string }
