import { describe, expect, it } from 'vitest'
import { meaningOf } from './line-meaning.ts'

describe('a line at the prompt', () => {
  it.each([
    ['python', 'exit', 0],
    ['python', 'exit()', 0],
    ['python', ' quit ( 3 ) ', 3],
    ['node', '.exit', 0],
    ['node', 'exit', 0],
    ['node', 'process.exit(2);', 2],
    ['bash', 'exit', 0],
    ['bash', 'exit 300', 44],
    ['bash', 'logout', 0],
  ] as const)('of %s leaves: %s', (runtime, line, exitCode) => {
    expect(meaningOf(runtime, line)).toEqual({ kind: 'leave', exitCode })
  })

  it.each(['python', 'node'] as const)('of %s that begins with ! is for the shell', (runtime) => {
    expect(meaningOf(runtime, '! ls -l | wc')).toEqual({ kind: 'shell', line: 'ls -l | wc' })
  })

  it.each([
    ['python', 'exit = 1'],
    ['python', 'exit(code)'],
    ['python', 'if x:\n  exit()'],
    ['python', '!'],
    ['python', '!ls\nx = 1'],
    ['node', '!done'.replace('!', 'x = !')],
    ['bash', '!ls'],
    ['bash', 'exit $x'],
  ] as const)('of %s is code: %s', (runtime, line) => expect(meaningOf(runtime, line)).toBeUndefined())
})
