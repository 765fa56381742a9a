import { inspect, types } from 'node:util'
import { type DriverError, ERROR_BYTES } from '../../session/driver.ts'
import { showText } from './show.ts'

const { isNativeError } = types
const encoder = new TextEncoder()
const decoder = new TextDecoder()
const encode = encoder.encode.bind(encoder)
const decode = decoder.decode.bind(decoder)

/** Frames from where we called V8 to the bottom: ours and Node's; and any other of ours. */
const OUR_FRAMES = new RegExp(
  String.raw`^\s+at [^\n]*node:inspector:\d+[^\n]*(?:\n\s+at [^\n]*)*\n?|^\s+at [^\n]*${RegExp.escape(__filename)}[^\n]*\n?`,
  'gm',
)

/** What was thrown, whatever it is: asking it may run code of the step, and may fail. */
export function describeError(thrown: unknown): DriverError {
  try {
    return bound(isNativeError(thrown) || thrown instanceof Error ? describe(thrown) : describeValue(thrown))
  } catch {
    return { name: 'Error', message: 'something was thrown that cannot be shown', traceback: '' }
  }
}

function describe(error: Error): DriverError {
  const made = error.constructor?.name
  const name = error.name === 'Error' && typeof made === 'string' && made !== '' ? made : error.name
  const traceback = inspect(error, { depth: 2, maxStringLength: ERROR_BYTES.message, maxArrayLength: 20 })
  return { name, message: error.message, traceback: traceback.replace(OUR_FRAMES, '').trimEnd() }
}

function describeValue(thrown: unknown): DriverError {
  const text = showText(thrown)
  return { name: 'Uncaught', message: typeof thrown === 'string' ? thrown : text, traceback: `Uncaught ${text}` }
}

function bound(error: DriverError): DriverError {
  return {
    name: cut(error.name, ERROR_BYTES.name),
    message: cut(error.message, ERROR_BYTES.message),
    traceback: cut(error.traceback, ERROR_BYTES.traceback),
  }
}

/** At most so many bytes of UTF-8; a character that would be cut is left out. */
function cut(text: unknown, bytes: number): string {
  const whole = encode(String(text))
  if (whole.length <= bytes) return decode(whole)
  let end = bytes
  while (end > 0 && ((whole[end] ?? 0) & 0xc0) === 0x80) end--
  return decode(whole.subarray(0, end))
}
