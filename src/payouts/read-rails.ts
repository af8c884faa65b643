import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import { Type } from 'typebox'
import { SettingsProblem } from '../config.ts'
import { strictObject } from '../kernel/schemas.ts'
import type { Mode } from '../partners/partners.ts'
import type { ChannelType, Rail } from './channels/rail.ts'
import { channelTypes } from './registry.ts'

/**
 * Reads the rails from the file that MIDMONTH_RAILS names. File rails come first.
 * @throws SettingsProblem that names every fault
 */
export async function readRails(file: string, mode: Mode): Promise<Rail[]> {
  const fail = (faults: string[]): never => {
    throw new SettingsProblem(`MIDMONTH_RAILS (${file}): ${faults.join('; ')}`)
  }
  let given: unknown
  try {
    given = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    return fail([`cannot be read as JSON: ${error instanceof Error ? error.message : error}`])
  }
  const types = await loadTypes(given)
  const validate = compile([...types.values()])
  if (!validate(given))
    return fail((validate.errors ?? []).map(({ instancePath, message }) => `${instancePath || 'the file'} ${message}`))
  const read = given.rails.map(each => ({ each, type: typeNamed(types, each.type) }))
  const faults = [
    ...read.flatMap(({ each, type }) => type.faults(each, mode)),
    ...repeated(given.rails, 'name'),
    ...repeated(given.rails, 'currency'),
  ]
  if (faults.length > 0) return fail(faults)
  const rails = read.map(({ each, type }) => type.configure(each, mode))
  return rails.toSorted((one, other) => Number(one.files === null) - Number(other.files === null))
}

type GivenRail = { type: string; name: string; currency: string }

/** Loads the channels that a file names, or all channels if it names none, so that its faults can be reported. */
async function loadTypes(given: unknown): Promise<ReadonlyMap<string, ChannelType>> {
  const named = Object.keys(channelTypes).filter(type => typesIn(given).has(type))
  const wanted = named.length > 0 ? named : Object.keys(channelTypes)
  const loaded = Object.entries(channelTypes).filter(([type]) => wanted.includes(type))
  return new Map(await Promise.all(loaded.map(async ([type, load]) => [type, await load()] as const)))
}

function typesIn(given: unknown): Set<unknown> {
  if (typeof given !== 'object' || given === null || !('rails' in given) || !Array.isArray(given.rails))
    return new Set()
  return new Set(given.rails.map(rail => rail?.type))
}

/** The `type` decides which schema a rail has, so that its faults are those of that type alone. */
function compile(types: readonly ChannelType[]) {
  const RailsFile = strictObject({
    rails: Type.Array(
      Type.Unsafe<GivenRail>({
        type: 'object',
        required: ['type'],
        discriminator: { propertyName: 'type' },
        oneOf: types.map(({ schema }) => schema),
      }),
      { minItems: 1, maxItems: 20 },
    ),
  })
  // Unlike the validator of requests, it reports every fault, so that an operator can correct all of them at once.
  return new Ajv({ allErrors: true, discriminator: true, strict: false }).compile<{ rails: GivenRail[] }>(RailsFile)
}

function typeNamed(types: ReadonlyMap<string, ChannelType>, name: string): ChannelType {
  const type = types.get(name)
  if (type === undefined) throw new Error(`unknown type of rail ${name}`)
  return type
}

function repeated(rails: readonly GivenRail[], field: 'name' | 'currency'): string[] {
  const values = rails.map(each => each[field])
  const twice = new Set(values.filter((value, index) => values.indexOf(value) !== index))
  return [...twice].map(value => `two rails have the ${field} ${value}`)
}
