import { escapeSteering } from './steering.ts'

const LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LEVELS)[number]

/** Operational log, one JSON object a line. It is not evidence: nothing relies on it. */
export interface Log {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
}

export type LogFields = Readonly<Record<string, unknown>>

export function createLog(options: { process: string; level: LogLevel; write(line: string): void }): Log {
  const at = (level: LogLevel) => (message: string, fields?: LogFields) => {
    if (LEVELS.indexOf(level) < LEVELS.indexOf(options.level)) return
    const line = { ts: new Date().toISOString(), level, process: options.process, message, ...fields }
    options.write(`${escapeSteering(JSON.stringify(line, plainErrors))}\n`)
  }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** Errors have no enumerable fields, so JSON would show `{}`. */
function plainErrors(_key: string, value: unknown): unknown {
  if (!(value instanceof Error)) return value
  return { name: value.name, message: value.message, stack: value.stack, cause: value.cause }
}
