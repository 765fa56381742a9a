import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EventStream, type Judging, readLargeEvent, type StreamEvent, type Verdict } from './event-stream.ts'

interface Outcome {
  readonly bytes: string
  readonly events: readonly StreamEvent[]
}

const PASS_ALL = (): Verdict => 'pass'

function run(chunks: readonly Buffer[], judge: (event: StreamEvent) => Verdict = PASS_ALL): Outcome {
  const events: StreamEvent[] = []
  const stream = new EventStream({ maxEventBytes: 1 << 20, maxReadBytes: READ })
  const seen = (event: StreamEvent): Verdict => {
    events.push(event)
    return judge(event)
  }
  const out = [...chunks.flatMap((chunk) => drive(stream.write(chunk), seen)), ...drive(stream.end(), seen)]
  return { bytes: Buffer.concat(out).toString('utf8'), events }
}

/** Longer events of these tests are read as in a thread. */
const READ = 20

function drive(judging: Judging, judge: (event: StreamEvent) => Verdict = PASS_ALL): readonly Buffer[] {
  let step = judging.next()
  while (step.done !== true) {
    const event = 'bytes' in step.value ? readLargeEvent(step.value.bytes) : step.value
    step = judging.next(event === undefined ? 'pass' : judge(event))
  }
  return step.value
}

/** Each way to cut a text in two, and into single bytes. */
function cuts(text: string): readonly (readonly Buffer[])[] {
  const bytes = Buffer.from(text)
  const halves = Array.from({ length: bytes.length + 1 }, (_, at) => [bytes.subarray(0, at), bytes.subarray(at)])
  return [...halves, Array.from(bytes, (byte) => Buffer.from([byte])), [bytes]]
}

const TEXT = [
  '\ufeff: hello',
  '',
  'event: first',
  'data: {"é":"😀"}',
  '',
  'data:two',
  'data: lines',
  'id: 7',
  'retry: 10',
  '',
  ': between',
  '',
  'event: drop',
  'data',
  ': within',
  'data:  spaced',
  'unknown: field',
  '',
  '',
  'event: without data',
  '',
  'data: [DONE]',
  '',
  '',
].join('\n')
const EVENTS = [
  { name: 'first', data: '{"é":"😀"}' },
  { name: '', data: 'two\nlines' },
  { name: 'drop', data: '\n spaced' },
  { name: '', data: '[DONE]' },
]
const ENDS = [
  ['LF', '\n'],
  ['CRLF', '\r\n'],
  ['CR', '\r'],
] as const

describe('a stream of events with lines that end in', () => {
  it.each(ENDS)('%s passes as it is, wherever it is cut', (_, end) => {
    const text = TEXT.replaceAll('\n', end)
    for (const chunks of cuts(text)) expect(run(chunks)).toEqual({ bytes: text, events: EVENTS })
  })

  it.each(ENDS)('%s loses the event that is dropped and nothing else', (_, end) => {
    const lines = (text: string) => text.replaceAll('\n', end)
    const dropped = 'event: drop\ndata\n: within\ndata:  spaced\nunknown: field\n\n'
    const judge = ({ name }: StreamEvent): Verdict => (name === 'drop' ? 'drop' : 'pass')
    expect(TEXT).toContain(dropped)
    for (const chunks of cuts(lines(TEXT)))
      expect(run(chunks, judge)).toEqual({ bytes: lines(TEXT.replace(dropped, '')), events: EVENTS })
  })

  it.each(ENDS)('%s has other bytes in place of an event', (_, end) => {
    const text = `data: a${end}${end}data: b${end}${end}data: c${end}${end}`
    const judge = ({ data }: StreamEvent): Verdict => (data === 'b' ? Buffer.from('data: x\n\n') : 'pass')
    for (const chunks of cuts(text))
      expect(run(chunks, judge).bytes).toBe(`data: a${end}${end}data: x\n\ndata: c${end}${end}`)
  })
})

describe('random streams', () => {
  const end = fc.constantFrom('\n', '\r\n', '\r')
  const word = fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll(/[\r\n]/g, ''))
  const line = fc
    .oneof(
      word.map((text) => `data: ${text}`),
      word.map((text) => `data:${text}`),
      word.map((text) => `:${text}`),
      word.map((text) => `x${text}`),
      fc.constantFrom('data', 'event: a', 'id: 1'),
    )
    .chain((text) => end.map((end) => text + end))
  const event = fc.record({
    lines: fc.array(line, { minLength: 1, maxLength: 4 }),
    blank: end,
    isDropped: fc.boolean(),
  })

  it('are the bytes of the events that are kept', () => {
    fc.assert(
      fc.property(fc.array(event), fc.array(fc.nat(12)), (events, sizes) => {
        // A blank line of LF after a line end of CR would be one line end.
        const raws = events.map(({ lines, blank, isDropped }) => {
          const text = lines.join('')
          const isMerged = text.endsWith('\r') && blank === '\n'
          const isEvent = lines.some((line) => /^data(?:[:\r\n])/.test(line))
          return { raw: text + (isMerged ? '\r' : blank), isDropped: isDropped && isEvent, isEvent }
        })
        const glued = raws.some(({ raw }, at) => raw.endsWith('\r') && raws[at + 1]?.raw.startsWith('\n'))
        fc.pre(!glued)
        const text = Buffer.from(raws.map(({ raw }) => raw).join(''))
        const verdicts = raws.filter(({ isEvent }) => isEvent).map(({ isDropped }) => isDropped)
        let at = 0
        const { bytes, events: seen } = run(cut(text, sizes), () => (verdicts[at++] ? 'drop' : 'pass'))
        expect(seen.length).toBe(verdicts.length)
        // Comments before the first field of an event are not a part of it.
        const kept = raws.map(({ raw, isDropped }) => (isDropped ? commentsOf(raw) : raw))
        expect(bytes).toBe(kept.join(''))
      }),
    )
  })

  function commentsOf(raw: string): string {
    return /^(?::[^\r\n]*(?:\r\n|\r|\n))*/.exec(raw)?.[0] ?? ''
  }

  function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
    const chunks: Buffer[] = []
    let from = 0
    for (const size of sizes) {
      chunks.push(bytes.subarray(from, from + size))
      from += size
    }
    return [...chunks, bytes.subarray(from)]
  }
})

describe('bytes go on', () => {
  const stream = () => new EventStream({ maxEventBytes: 100, maxReadBytes: 100 })
  const write = (one: EventStream, text: string) => Buffer.concat(drive(one.write(Buffer.from(text)))).toString()

  it('with the blank line of an event, and of comments at once', () => {
    const one = stream()
    expect(write(one, ': still here\n')).toBe(': still here\n')
    expect(write(one, 'data: a\n')).toBe('')
    expect(write(one, ': within\n')).toBe('')
    expect(write(one, '\n')).toBe('data: a\n: within\n\n')
    expect(write(one, 'data: b\r\n\r')).toBe('data: b\r\n\r')
    expect(write(one, '\ndata: c\n\n')).toBe('\ndata: c\n\n')
  })

  it('of a whole chunk as one buffer without copying', () => {
    const chunk = Buffer.from('data: a\n\n: x\n\ndata: b\n\n')
    const out = drive(stream().write(chunk))
    expect(out.length).toBe(1)
    expect(out[0]?.buffer).toBe(chunk.buffer)
  })

  it('when no more come, as far as they came', () => {
    for (const rest of ['data: a', 'data: a\n', 'event: x', ': comment', 'data: a\r'])
      expect(run([Buffer.from(`data: 0\n\n${rest}`)]).bytes).toBe(`data: 0\n\n${rest}`)
    expect(run([Buffer.from('data: a')], () => 'drop')).toEqual({ bytes: '', events: [{ name: '', data: 'a' }] })
  })

  it('of a long event that comes byte by byte', () => {
    const size = 1 << 20
    const one = new EventStream({ maxEventBytes: 2 * size, maxReadBytes: 4096 })
    const byte = Buffer.from('x')
    drive(one.write(Buffer.from('data: ')))
    for (let at = 0; at < size; at++) drive(one.write(byte))
    expect(Buffer.concat(drive(one.write(Buffer.from('\n\n')))).length).toBe(size + 8)
  })

  it('of an event up to the bound, and no further', () => {
    expect(write(stream(), `data: ${'x'.repeat(92)}\n\n`).length).toBe(100)
    const tooLong = [`data: ${'x'.repeat(95)}\n\n`, 'x'.repeat(101), `: ${'x'.repeat(101)}\n`, 'data: x\n'.repeat(13)]
    for (const text of tooLong) {
      const byByte = stream()
      expect(() => drive(stream().write(Buffer.from(text)))).toThrow(
        expect.objectContaining({ code: 'upstream_broken' }),
      )
      expect(() => {
        for (const byte of Buffer.from(text)) drive(byByte.write(Buffer.from([byte])))
      }).toThrow(expect.objectContaining({ code: 'upstream_broken' }))
    }
  })
})
