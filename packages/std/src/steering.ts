/**
 * Characters that steer a terminal instead of being shown: control characters, those that turn the direction of text, and
 * line separators. Text that others made has none of them when it reaches a terminal.
 */
export const STEERING = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu

/** JSON with the same value in which each of them is an escape. Line feeds are the layout: inside of strings JSON has none. */
export function escapeSteering(json: string): string {
  return json.replaceAll(STEERING, (char) => (char === '\n' ? char : escape(char)))
}

function escape(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
}
