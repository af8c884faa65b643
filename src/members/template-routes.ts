import { createReadStream } from 'node:fs'
import { mediaTypes } from '../contract/media-types.ts'
import { csvHeaders } from '../http/bodies/csv.ts'
import type { App } from '../http/server/server.ts'
import { template } from './file.ts'

/** Serves the empty files for lists of members. They are public: the person who fills one in has no API key. */
export function memberTemplateRoutes(app: App): void {
  app.get('/members-template.csv', async (_request, reply) =>
    reply.headers(csvHeaders('members-template.csv')).send(template),
  )
  app.get('/members-template.xlsx', async (_request, reply) =>
    reply
      .type(mediaTypes.xlsx)
      .header('content-disposition', 'attachment; filename="members-template.xlsx"')
      .send(createReadStream(new URL('template.xlsx', import.meta.url))),
  )
}
