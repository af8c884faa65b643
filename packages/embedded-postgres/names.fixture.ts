import type { Names } from './roles.ts'

/** The names that the tests of this package give to their databases. */
export const names: Names = {
  app: 'midmonth',
  database: 'midmonth',
  roles: { owner: 'midmonth_owner', app: 'midmonth_app', read: 'midmonth_read' },
}
