/** What a file may hold. Beyond the first three of them reading stops; a cell that is too long is a fault of its row alone. */
export const limits = {
  /** Rows below the header, blank ones among them: the largest member list that can be imported at once. */
  rowsMax: 1_000_000,
  /** Cells of a row. A list has 14 columns that we know; nobody who sends more than this means them. */
  columnsMax: 100,
  /** Rows whose number of cells is not the header's. So many are no slips: the file is cut or quoted in another way. */
  raggedRowsMax: 10_000,
  /** Characters of a cell. The longest thing that is ever in one is an e-mail address of 254. */
  cellCharsMax: 1_000,
  /** Bytes of a CSV row: a hundred cells of the longest kind, in a script of four bytes a character, and some quotes. */
  recordBytesMax: 512 * 1024,
  /** Rows that are handed over together: enough to be cheap, few enough to be nothing in memory. */
  batchRowsMax: 1_000,
}
