import type { Names } from './roles.ts'

/** The names that the tests of this package give to their databases. */
export const names: Names = {
  app: 'openwage',
  database: 'openwage',
  roles: { owner: 'openwage_owner', app: 'openwage_app', read: 'openwage_read' },
  formerSuperuser: 'openwage',
}
