import { STEERING } from '@airlock/std'

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly process: string
  /** For people: one line without control characters. */
  readonly text: string
  /** False for what was printed past the log, such as the stack of a crash. */
  readonly structured: boolean
}

const LEVELS = ['debug', 'info', 'warn', 'error'] as const

/** Reads one line of a child's stderr. Whatever is not of our log is an error of that process: nothing else prints. */
export function parseLogLine(process: string, line: string): LogLine {
  const fields = parseObject(line)
  const level = LEVELS.find((name) => name === fields?.['level'])
  if (!fields || !level) return { level: 'error', process, text: printable(line), structured: false }
  return { level, process, text: printable(describe(fields)), structured: true }
}

/** Nothing in it steers a terminal: a log line may quote what hostile code said. */
export function printable(text: string): string {
  return text.replaceAll(STEERING, ' ').trimEnd()
}

function describe(fields: Readonly<Record<string, unknown>>): string {
  const { level: _level, ts: _ts, process: _process, message, ...rest } = fields
  const details = Object.entries(rest).map(([key, value]) => (key === 'error' ? say(value) : `${key}=${say(value)}`))
  return details.length > 0 ? `${say(message)} (${details.join(', ')})` : say(message)
}

function say(value: unknown): string {
  if (typeof value === 'string') return value
  if (isRecord(value) && typeof value['message'] === 'string') return value['message']
  return JSON.stringify(value) ?? ''
}

function parseObject(line: string): Readonly<Record<string, unknown>> | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const value: unknown = JSON.parse(line)
    return isRecord(value) ? value : undefined
  } catch {
    // Not of our log, or cut at the bound: shown as it is.
    return undefined
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
