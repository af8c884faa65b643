/**
 * `shared`: one lane for all partners, so a batch may hold commands of several. `partner`: a lane per partner, so that every
 * statement of a batch concerns one partner and a distributed PostgreSQL can route it to one node.
 */
export type Lanes = 'shared' | 'partner'
