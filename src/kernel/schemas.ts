import { type Static, type TProperties, type TSchema, type TSchemaOptions, Type } from 'typebox'

/** The options of an object schema that refuses unknown fields. */
export const strict = { additionalProperties: false }

/** An object that refuses unknown fields. */
export const strictObject = <Fields extends TProperties>(fields: Fields) => Type.Object(fields, strict)

/** An object that refuses unknown fields. The documents and the SDK know it by its title. */
export const namedObject = <Fields extends TProperties>(title: string, fields: Fields) =>
  Type.Object(fields, { title, ...strict })

/** Null, or a value of this schema. */
export const nullable = <Schema extends TSchema>(schema: Schema, description?: string) =>
  Type.Union([schema, Type.Null()], description === undefined ? {} : { description })

/** A schema with another description. */
export const described = <Schema extends TSchema>(schema: Schema, description: string) =>
  Type.Unsafe<Static<Schema>>({ ...schema, description })

/** One of these words. */
export const wordOf = <const Word extends string>(words: readonly Word[], options: TSchemaOptions = {}) =>
  Type.Enum<Word[]>([...words], { type: 'string', ...options })

export const Count = Type.Integer({ minimum: 0 })
export const TextOrNull = nullable(Type.String())
