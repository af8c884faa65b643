import type { Names } from './roles.ts'

/** The database names in the tests of this package. */
export const names: Names = {
  app: 'midmonth',
  database: 'midmonth',
  roles: { owner: 'midmonth_owner', app: 'midmonth_app', read: 'midmonth_read' },
}
