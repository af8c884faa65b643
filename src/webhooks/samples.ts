import type { TSchema } from 'typebox'
import { catalogue, type EventType } from '../events/catalogue.ts'

/** The body of a delivery: a made-up event of this type, with the ids of the examples in the reference. */
export function sampleEvent(type: EventType, { id, now }: { id: string; now: Date }) {
  return { id, type, timestamp: now.toISOString(), sequence: 1, data: exampleOf(catalogue[type].data) }
}

type Schema = {
  type?: string
  examples?: unknown[]
  enum?: unknown[]
  minimum?: number
  properties?: Record<string, Schema>
  items?: Schema
}

/** An example of a value, from the examples in its schema. */
function exampleOf(schema: TSchema): unknown {
  const { type, examples, enum: values, minimum = 0, properties = {}, items } = schema as Schema
  if (examples?.[0] !== undefined) return examples[0]
  if (values !== undefined) return values[0]
  switch (type) {
    case 'object':
      return Object.fromEntries(
        // A sample has no metadata, because only real objects have metadata.
        Object.entries(properties).flatMap(([name, field]) => (name === 'metadata' ? [] : [[name, exampleOf(field)]])),
      )
    case 'array':
      return items === undefined ? [] : [exampleOf(items)]
    case 'integer':
      return minimum
    default:
      return 'example'
  }
}
