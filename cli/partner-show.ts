import { floatOnWire } from '../src/operators/float-schema.ts'
import { type PartnerView, stopInWords } from '../src/operators/partner-view.ts'
import { inTable } from './float.ts'
import { sheet } from './print.ts'

export function partnerOnWire({ state, stops, openCycle, floats, keys, members: counts }: PartnerView) {
  const { paused: _, suspendedAt: __, id, name, createdAt, ...settings } = state
  return { id, name, createdAt, ...stops, settings, openCycle, floats: floats.map(floatOnWire), keys, members: counts }
}

export function partnerInWords({ state, stops, openCycle, floats, keys, members: counts }: PartnerView): string {
  const { paused: _, suspendedAt: __, id, name, createdAt, ...settings } = state
  return [
    sheet({
      id,
      name,
      created: createdAt.toISOString(),
      paused: stops.paused === null ? 'no' : stopInWords(stops.paused),
      suspended: stops.suspended === null ? 'no' : stopInWords(stops.suspended),
      'open cycle': openCycle === null ? null : `${openCycle.id}, ${openCycle.startDate} to ${openCycle.endDate}`,
      members: `${counts.active} active, ${counts.invited} invited, ${counts.inactive} inactive`,
      keys: `${keys.valid} valid, ${keys.expired} expired, ${keys.revoked} revoked`,
    }),
    '',
    sheet(settings),
    '',
    inTable(floats),
  ].join('\n')
}
