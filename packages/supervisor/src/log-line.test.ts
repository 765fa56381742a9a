import { expect, it } from 'vitest'
import { parseLogLine } from './log-line.ts'

it('makes a sentence of a line of our log', () => {
  const line = { ts: 'now', level: 'warn', process: 'x', message: 'slow', sandbox: 'sb_1', error: { message: 'gone' } }
  expect(parseLogLine('recorder', JSON.stringify(line))).toEqual({
    level: 'warn',
    process: 'recorder',
    text: 'slow (sandbox=sb_1, gone)',
    structured: true,
  })
})

it.each(['Error: broken', '{"level":"warn"', '{"level":"loud"}', '[1]', '{}'])(
  'takes %j for an error of the process',
  (line) => {
    expect(parseLogLine('recorder', line)).toEqual({
      level: 'error',
      process: 'recorder',
      text: line,
      structured: false,
    })
  },
)

it('lets no control character through', () => {
  expect(parseLogLine('x', '\u001B[2J\u009B31mred\u0007\r').text).toBe(' [2J 31mred')
  expect(parseLogLine('x', '{"level":"error","message":"\\u001b[2J\\n"}').text).toBe(' [2J')
  expect(parseLogLine('x', 'a\u202Eb\u2066c\u2028d').text).toBe('a b c d')
})
