import { client } from './api.ts'
import { type AdminOperations, operations } from './generated/admin.ts'

/** The operators' API by the ids of its operations, with the SDK's client: `admin.pausePartner(partnerId, { reason })`. */
export const admin = operatorsApi()

function operatorsApi(): AdminOperations {
  const methods: Record<string, (...given: unknown[]) => unknown> = {}
  for (const [name, operation] of Object.entries(operations))
    methods[name] = (...given) => client.call(operation, given)
  return methods as typeof methods & AdminOperations
}
