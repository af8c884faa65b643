import { Ajv } from 'ajv'
import formats from 'ajv-formats'
import { hasVisible, visibleFormat } from './text.ts'
import { timeFormats } from './time.ts'

/**
 * The one JSON Schema validator of the program. It changes no value: it does not coerce, fill in defaults or remove fields.
 * It stops at the first error, and checks lengths before contents, so that a hostile value costs no more than a good one.
 */
export const ajv = new Ajv({
  discriminator: true,
  strict: false,
  coerceTypes: false,
  removeAdditional: false,
  useDefaults: false,
})
formats.default(ajv)
for (const [name, validate] of Object.entries(timeFormats)) ajv.addFormat(name, validate)
ajv.addFormat(visibleFormat, hasVisible)
