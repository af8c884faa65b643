/**
 * The file cannot be read, at all or beyond this row. The message is for the author of the file: it says what is wrong and what
 * to do, without details of libraries or internals.
 */
export class FileFault extends Error {
  /** The row where reading stopped, as a spreadsheet counts; 1 for faults of the whole file. */
  readonly row: number

  constructor(row: number, message: string) {
    super(message)
    this.name = 'FileFault'
    this.row = row
  }
}
