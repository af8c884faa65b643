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

/** Formats that only this program knows. They are not published, because strict clients refuse unknown formats. */
export const ownFormats = { ...timeFormats, [visibleFormat]: hasVisible }
for (const [name, validate] of Object.entries(ownFormats)) ajv.addFormat(name, validate)
