/** The options of an object schema that refuses unknown fields. */
export const strict = { additionalProperties: false }
