import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ERROR_BYTES, LINE_BYTES } from './driver.ts'
import { BrokenFraming, LineSplitter, parseDriverLine } from './driver-lines.ts'

const line = fc.string({ maxLength: 40, unit: 'binary' }).map((text) => text.replaceAll('\n', ' '))

describe('lines of a driver', () => {
  it('come back whole, however they were cut', () => {
    fc.assert(
      fc.property(
        fc.array(line, { maxLength: 8 }),
        fc.infiniteStream(fc.integer({ min: 1, max: 30 })),
        (sent, sizes) => {
          const splitter = new LineSplitter()
          const got: string[] = []
          let rest = Buffer.from(sent.map((text) => `${text}\n`).join(''))
          for (const size of sizes) {
            if (rest.length === 0) break
            got.push(...splitter.push(rest.subarray(0, size)).map(String))
            rest = rest.subarray(size)
          }
          expect(got).toEqual(sent.map((text) => Buffer.from(text).toString()))
        },
      ),
    )
  })

  it('are refused when they are too long, before they are held', () => {
    const splitter = new LineSplitter()
    const chunk = Buffer.alloc(1024 * 1024, 1)
    expect(() => {
      for (let bytes = 0; bytes <= LINE_BYTES; bytes += chunk.length) splitter.push(chunk)
    }).toThrow(BrokenFraming)
  })

  it('are messages or broken framing, nothing else', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json(), message), (text) => {
        try {
          expect(parseDriverLine(Buffer.from(text))).toHaveProperty('type')
        } catch (error) {
          expect(error).toBeInstanceOf(BrokenFraming)
        }
      }),
      { numRuns: 1000 },
    )
  })

  it('are taken as they are meant', () => {
    const nonce = '0'.repeat(32)
    const said = [
      { type: 'ready', version: 'Python 3' },
      { type: 'done', nonce, status: 'failed' },
      { type: 'rich', nonce, line: { kind: 'display', data: { 'text/plain': 'a', 'application/json': [1] } } },
      { type: 'rich', nonce, line: { kind: 'error', error: { name: 'E', message: 'm', traceback: 't' } } },
    ]
    expect(said.map((one) => parseDriverLine(Buffer.from(JSON.stringify(one))))).toEqual(said)
  })

  it('are bounded where user code may have written them', () => {
    const long = { name: 'n'.repeat(9999), message: 'ü'.repeat(9999), traceback: 5 }
    const text = JSON.stringify({ type: 'rich', nonce: 'x', line: { kind: 'error', error: long } })
    const error = { name: 'n'.repeat(ERROR_BYTES.name), message: 'ü'.repeat(ERROR_BYTES.message / 2), traceback: '' }
    expect(parseDriverLine(Buffer.from(text))).toEqual({ type: 'rich', nonce: 'x', line: { kind: 'error', error } })
  })
})

/** Nearly right, so that every branch is reached. */
const message = fc
  .record(
    {
      type: fc.constantFrom('ready', 'rich', 'done', 'other'),
      nonce: fc.oneof(fc.string(), fc.nat()),
      version: fc.oneof(fc.string(), fc.constant(null)),
      status: fc.constantFrom('completed', 'failed', 'else'),
      line: fc.record(
        { kind: fc.constantFrom('display', 'error', 'x'), data: fc.jsonValue(), error: fc.jsonValue() },
        { requiredKeys: [] },
      ),
    },
    { requiredKeys: [] },
  )
  .map((value) => JSON.stringify(value))
