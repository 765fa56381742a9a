import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { createLog } from './log.ts'
import { escapeSteering } from './steering.ts'

const STEERS = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u

it('leaves nothing in JSON that steers a terminal, and the value as it was', () => {
  const hostile = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('\u007F', '\u009B', '\u202E', '\u2028', '\n'))
  fc.assert(
    fc.property(fc.dictionary(hostile, hostile), fc.constantFrom(undefined, 2), (value, indent) => {
      const json = escapeSteering(JSON.stringify(value, null, indent))
      expect(json.replaceAll('\n', '')).not.toMatch(STEERS)
      expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(value)))
    }),
  )
})

it('leaves nothing of it in a line of the log', () => {
  const lines: string[] = []
  const log = createLog({ process: 'x', level: 'info', write: (line) => lines.push(line) })
  log.error('said', { text: '\u009B2J\u202E' })
  expect(lines.map((line) => line.trimEnd())).toEqual([expect.not.stringMatching(STEERS)])
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ text: '\u009B2J\u202E' })
})
