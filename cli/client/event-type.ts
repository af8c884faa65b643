import { InvalidArgumentError, Option } from 'commander'
import type { EventType } from '../../packages/sdk/src/generated/schemas.ts'
import { eventTypes } from '../contract.ts'

/** The option that selects types of events. */
export function typesOption(): Option {
  return new Option('--types <types...>', 'only these types (default: all)').argParser(
    (text: string, before: EventType[] = []) => [...before, oneEventType(text)],
  )
}

export function oneEventType(text: string): EventType {
  if (!isEventType(text)) throw new InvalidArgumentError('There is no such type; docs/reference/events.md lists them.')
  return text
}

function isEventType(text: string): text is EventType {
  return eventTypes().includes(text)
}
