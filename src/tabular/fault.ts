/**
 * The file cannot be read, or not beyond this row. The message is for the person who made the file: it says what is wrong
 * and the way out, and holds nothing of libraries or of our inside.
 */
export class FileFault extends Error {
  /** Where reading stopped, as a spreadsheet counts; 1 when it is about the file as a whole. */
  readonly row: number

  constructor(row: number, message: string) {
    super(message)
    this.name = 'FileFault'
    this.row = row
  }
}
