/** What a file may hold. Beyond most of these reading stops; a cell that is too long is a fault of its row alone. */
export const limits = {
  /** Rows below the header, blank ones among them: the largest member list that can be imported at once. */
  rowsMax: 1_000_000,
  /** Cells of a row. A list has 13 known columns; more than this is a mistake. */
  columnsMax: 100,
  /** Cells of a row, empty ones too, beyond which nothing more of the file is read. */
  rowCellsMax: 1_000,
  /** Rows whose number of cells is not the header's. So many are no slips: the file is cut or quoted in another way. */
  raggedRowsMax: 10_000,
  /** Characters of a cell. The longest thing that is ever in one is an e-mail address of 254. */
  cellCharsMax: 1_000,
  /** Bytes of a CSV row: a hundred cells of the longest kind, in a script of four bytes a character, and some quotes. */
  recordBytesMax: 512 * 1024,
  /** Parts of a workbook. One with a dozen sheets, each with drawings, has some hundred. */
  archivePartsMax: 1_000,
  /** Bytes out for each byte in. Honest sheets come to 30, those that hold one row again and again to 100, bombs to 1,000. */
  ratioMax: 200,
  /** Bytes of a part that may be packed as tightly as it likes: it is too small to do harm. */
  ratioFreeBytes: 1024 * 1024,
  /** Unpacked bytes of the sheet: a million rows of thirteen cells. It is read as it is unpacked. */
  sheetBytesMax: 768 * 1024 * 1024,
  /** Unpacked bytes of the texts that cells share: six of a million rows. They are held in memory, as bytes. */
  sharedStringsBytesMax: 256 * 1024 * 1024,
  /** Unpacked bytes of each part that only says how the workbook is put together. */
  frameBytesMax: 4 * 1024 * 1024,
  /** Characters of a text or an attribute. A cell of a spreadsheet holds 32,767, and each may be written in eight. */
  textCharsMax: 256 * 1024,
  /** Tags within tags. A cell with formatted text is six deep. */
  tagDepthMax: 50,
  /** Characters of a number format: what Excel allows. */
  numberFormatCharsMax: 255,
  /** Cells whose formula failed. Beyond that, it is the formula that wants mending and not the cells. */
  errorCellsMax: 10_000,
  /** Rows that are handed over together: enough to be cheap, few enough to be nothing in memory. */
  batchRowsMax: 1_000,
}
