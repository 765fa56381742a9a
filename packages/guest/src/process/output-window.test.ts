import { CHUNK_BYTES, WINDOW_BYTES } from '@airlock/contract/guest'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OutputWindow } from './output-window.ts'

describe('the window of output', () => {
  it('holds exactly what was not acknowledged, in order, wherever the acknowledgement cuts', () => {
    const steps = fc.array(fc.record({ text: fc.string({ minLength: 1, maxLength: 9 }), ack: fc.nat(100) }))
    fc.assert(
      fc.property(steps, (taken) => {
        const window = new OutputWindow()
        let all = Buffer.alloc(0)
        let acknowledged = 0
        for (const { text, ack } of taken) {
          all = Buffer.concat([all, Buffer.from(text)])
          window.push(1, Buffer.from(text))
          acknowledged = Math.max(acknowledged, Math.min(ack, all.length))
          window.acknowledge(acknowledged)
        }
        expect(window.produced).toBe(all.length)
        expect(Buffer.concat(window.segments.map(({ bytes }) => bytes))).toEqual(all.subarray(acknowledged))
        expect(window.segments[0]?.offset ?? all.length).toBe(acknowledged)
      }),
    )
  })

  it('is full while another chunk of each output might not fit, and has room again once acknowledged', () => {
    const window = new OutputWindow()
    while (!window.isFull) window.push(1, Buffer.alloc(CHUNK_BYTES))
    expect(window.produced).toBeLessThanOrEqual(WINDOW_BYTES - CHUNK_BYTES)
    window.acknowledge(window.produced)
    expect([window.isFull, window.segments.length]).toEqual([false, 0])
  })

  it('counts more than the bytes of dust', () => {
    const window = new OutputWindow()
    while (!window.isFull) window.push(1, Buffer.alloc(1))
    expect(window.segments.length).toBeLessThan(10_000)
  })
})
