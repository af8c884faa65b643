import type { Clock } from './kernel/time.ts'

/** The only real clock. Everything else receives a clock as an argument. */
export const systemClock: Clock = () => new Date()
