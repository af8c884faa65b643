/** Limits of a file. Exceeding most of them stops reading; a cell that is too long is only a fault of its row. */
export const limits = {
  /** Rows below the header, including blank ones: the largest member list that can be imported at once. */
  rowsMax: 1_000_000,
  /** Cells of a row. A list has 13 known columns; more than this is a mistake. */
  columnsMax: 100,
  /** Cells of a row, including empty ones, beyond which reading stops. */
  rowCellsMax: 1_000,
  /** Rows that have more or fewer cells than the header. Beyond this, the delimiter or the quoting is wrong. */
  raggedRowsMax: 10_000,
  /** Characters of a cell. The longest valid value is an e-mail address of 254. */
  cellCharsMax: 1_000,
  /** Bytes of a CSV row: a hundred cells of maximum length at four bytes per character, with some quotes. */
  recordBytesMax: 512 * 1024,
  /** Parts of a workbook. A workbook with a dozen sheets, each with drawings, has about a hundred. */
  archivePartsMax: 1_000,
  /** Compression ratio. Real sheets reach 30, sheets that repeat one row 100, zip bombs 1,000. */
  ratioMax: 200,
  /** Unpacked bytes of a part below which the ratio is not checked: the part is too small to do harm. */
  ratioFreeBytes: 1024 * 1024,
  /** Unpacked bytes of the sheet: a million rows of thirteen cells. The sheet is parsed while it is unpacked. */
  sheetBytesMax: 768 * 1024 * 1024,
  /** Unpacked bytes of the shared strings: six strings for each of a million rows. They are held in memory, as bytes. */
  sharedStringsBytesMax: 256 * 1024 * 1024,
  /** Unpacked bytes of each part that describes the structure of the workbook. */
  frameBytesMax: 4 * 1024 * 1024,
  /** Characters of a text or an attribute. A spreadsheet cell holds 32,767 characters, each written with up to eight. */
  textCharsMax: 256 * 1024,
  /** Tags within tags. A cell with formatted text is six deep. */
  tagDepthMax: 50,
  /** Characters of a number format: the limit of Excel. */
  numberFormatCharsMax: 255,
  /** Cells with a failed formula. Beyond this, the formula is wrong and listing its cells is pointless. */
  errorCellsMax: 10_000,
  /** Rows per batch: enough to be cheap, few enough to take little memory. */
  batchRowsMax: 1_000,
}
