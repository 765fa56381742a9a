import { EVENT_OUTPUT_BYTES } from '@airlock/contract/guest'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RunOutput } from './run-output.ts'

const line = (event: object) => `${JSON.stringify(event)}\n`
const delta = (text: string) => line({ type: 'text_delta', delta: text })
const result = (text: string) => line({ type: 'result', payloads: [{ text }], meta: { durationMs: 1, error: null } })

/** What comes of bytes that arrive in pieces. */
function read(pieces: readonly Buffer[]) {
  const output = new RunOutput()
  let offset = 0
  const events = pieces.flatMap((bytes) => {
    offset += bytes.length
    return output.push(bytes, offset)
  })
  return {
    events: [...events, ...output.end(offset)],
    text: output.text,
    fault: output.fault?.message,
    result: output.result,
  }
}

function cut(bytes: Buffer, at: readonly number[]): readonly Buffer[] {
  const places = [0, ...at.map((place) => place % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]
  return places.slice(1).map((place, n) => bytes.subarray(places[n], place))
}

describe('the event output of a program', () => {
  it('says the same however its bytes are cut', () => {
    const good = delta('a') + '\n' + delta('ü') + line({ type: 'status', phase: 'thinking' }) + result('aü and more')
    const bad = delta('a') + '{"type":"text_delta"}\n' + delta('b')
    fc.assert(
      fc.property(fc.array(fc.nat()), fc.constantFrom(good, bad), (at, text) => {
        const bytes = Buffer.from(text)
        expect(read(cut(bytes, at))).toEqual(read([bytes]))
      }),
    )
  })

  it('refuses nesting that a reader needs much stack for, and not brackets in texts', () => {
    const args = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
    const call = (levels: number) =>
      `{"type":"tool_call_start","toolCallId":"1","toolName":"t","args":{"x":${args(levels)}}}\n`
    for (const levels of [200, 400_000]) expect(read([Buffer.from(call(levels))]).fault).toContain('nested too deep')
    expect(read([Buffer.from(call(20))]).fault).toBeUndefined()
    expect(read([Buffer.from(delta('["'.repeat(1000)) + result('["'.repeat(1000)))]).fault).toBeUndefined()
  })

  it('never throws, whatever the bytes are', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array()), (pieces) => {
        read(pieces.map((piece) => Buffer.from(piece)))
      }),
    )
  })

  it('completes the deltas with the text of the result', () => {
    const { events, text } = read([Buffer.from(delta('one') + result('one two'))])
    expect([events.map((event) => 'delta' in event && event.delta), text]).toEqual([['one', ' two'], 'one two'])
  })

  it('may end without a newline', () => {
    expect(read([Buffer.from(result('all').trimEnd())])).toMatchObject({ text: 'all', fault: undefined })
  })

  it.each([
    ['a field that is not known', line({ type: 'text_delta', delta: 'a', cost: 0 })],
    ['a type that is not known', line({ type: 'assistant_final', content: 'a' })],
    ['an array', '[]\n'],
    ['a number that is not JSON', 'NaN\n'],
    ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22, 0x0a])],
    ['a second result', result('a') + result('a')],
  ])('is refused for %s, and nothing after it counts', (_, bytes) => {
    const { events, fault, text } = read([Buffer.from(bytes), Buffer.from(delta('after'))])
    expect(fault).toMatch(/^The events of the agent program are not valid: line \d/)
    expect([JSON.stringify(events), text]).not.toContain('after')
  })

  it('is refused at its cap, of lines and of bytes', () => {
    const long = Buffer.alloc(1024 * 1024 + 1, 'a')
    expect(read([long]).fault).toContain('line 1 is too long')
    const blank = Buffer.alloc(64 * 1024, '\n')
    const pieces = Array.from({ length: EVENT_OUTPUT_BYTES / blank.length }, () => blank)
    expect(read(pieces).fault).toContain('more than')
  })
})
