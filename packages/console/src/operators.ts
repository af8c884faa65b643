import { client } from './api.ts'
import { type OperatorOperations, operations } from './generated/operator.ts'

/** The operators' API by operation id, called with the SDK's client: `operators.pausePartner(partnerId, { reason })`. */
export const operators = operatorsApi()

function operatorsApi(): OperatorOperations {
  const methods: Record<string, (...given: unknown[]) => unknown> = {}
  for (const [name, operation] of Object.entries(operations))
    methods[name] = (...given) => client.call(operation, given)
  return methods as typeof methods & OperatorOperations
}
