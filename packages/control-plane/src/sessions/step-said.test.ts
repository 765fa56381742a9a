import type { StepEvent } from '@airlock/contract'
import { describe, expect, it } from 'vitest'
import type { OutputItem } from '@airlock/wire'
import { StepSaid } from './step-said.ts'

type Piece = readonly [stream: 'stdout' | 'stderr' | 'rich', text: string]

const shown = (text: string) => ({ kind: 'display', data: { 'text/plain': text } }) as const
const line = (value: unknown) => `${JSON.stringify(value)}\n`
const failed = (name: string) => ({ kind: 'error', error: { name, message: 'm', traceback: 't' } })

function items(pieces: readonly Piece[]): readonly Extract<OutputItem, { kind: 'bytes' }>[] {
  let offset = 0
  return pieces.map(([stream, text]) => {
    const item = { kind: 'bytes', stream, offset, bytes: Buffer.from(text) } as const
    offset += item.bytes.length
    return item
  })
}

/** What a reader gets who asks from `from` on and is sent rich lines whole. */
function read(pieces: readonly Piece[], from = 0): { events: readonly StepEvent[]; said: StepSaid } {
  const said = new StepSaid(from)
  const sent = items(pieces).filter(({ stream, offset, bytes }) => stream === 'rich' || offset + bytes.length > from)
  return { events: sent.flatMap((item) => [...said.take(item)]), said }
}

const RICH = line(shown('a'))
const SPREAD: readonly Piece[] = [
  ['stdout', 'one'],
  ['rich', RICH.slice(0, 5)],
  ['stderr', 'two'],
  ['rich', RICH.slice(5, 9)],
  ['stdout', 'three'],
  ['rich', `${RICH.slice(9)}${line(shown('b'))}`],
  ['stdout', 'four'],
]

describe('what a step says', () => {
  it('has one event for a rich line, where it ends, however many pieces it came in', () => {
    const end = 'onetwothree'.length + RICH.length
    expect(read(SPREAD).events).toEqual([
      { event: 'output', stream: 'stdout', offset: 3, text: 'one' },
      { event: 'output', stream: 'stderr', offset: 11, text: 'two' },
      { event: 'output', stream: 'stdout', offset: 20, text: 'three' },
      { event: 'rich', offset: end, output: shown('a') },
      { event: 'rich', offset: end + RICH.length, output: shown('b') },
      { event: 'output', stream: 'stdout', offset: end + RICH.length + 4, text: 'four' },
    ])
  })

  it('goes on after any event without losing or repeating one', () => {
    const { events } = read(SPREAD)
    for (const [at, event] of events.entries()) {
      if (!('offset' in event)) throw new TypeError('an event without an offset')
      expect(read(SPREAD, event.offset).events).toEqual(events.slice(at + 1))
    }
  })

  it('goes on within a piece of text with the rest of it', () => {
    expect(read([['stdout', 'hello']], 2).events).toEqual([
      { event: 'output', stream: 'stdout', offset: 5, text: 'llo' },
    ])
  })

  it('tells why it failed by its last rich line only', () => {
    expect(read([['rich', line(failed('A'))]]).said.error).toEqual(failed('A').error)
    expect(read([['rich', line(failed('A')) + line(failed('B'))]]).said.error?.name).toBe('B')
    expect(read([['rich', line(failed('A')) + RICH]]).said.error).toBeNull()
    expect(read([['rich', line(failed('A'))]]).events).toEqual([])
  })

  it.each(['nonsense', '{"kind":"display"}', '{"kind":"error","error":{}}', '', '\u0000'])(
    'leaves out the line %j, which was not agreed',
    (text) => {
      expect(read([['rich', `${text}\n${RICH}`]]).events).toMatchObject([{ event: 'rich', output: shown('a') }])
    },
  )

  it('bounds an error and keeps the end of its traceback', () => {
    const error = { name: 'n'.repeat(1e4), message: 'm'.repeat(1e5), traceback: `${'t'.repeat(1e5)}end` }
    const bounded = read([['rich', line({ kind: 'error', error })]]).said.error
    expect([bounded?.name.length, bounded?.message.length, bounded?.traceback.length]).toEqual([256, 16_384, 65_536])
    expect(bounded?.traceback.endsWith('end')).toBe(true)
  })
})
