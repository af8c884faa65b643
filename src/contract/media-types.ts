/** The media types of files that operations take and return. */
export const mediaTypes = {
  csv: 'text/csv',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  bytes: 'application/octet-stream',
  form: 'multipart/form-data',
} as const
