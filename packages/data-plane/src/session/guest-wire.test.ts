import { type Duplex, duplexPair } from 'node:stream'
import { AirlockError } from '@airlock/contract'
import { encodeMessage, FrameDecoder } from '@airlock/contract/guest'
import { createLog, deadline } from '@airlock/std'
import { expect, it } from 'vitest'
import { GuestWire } from './guest-wire.ts'

it('lets this process go on while a connection that was just lost is still attached', async () => {
  const { wire, dial } = await open()
  dial()
  await wire.connection(deadline(100_000))
  wire.attached?.destroy()
  // Asking again at once, in the same turn of the event loop, would find the same connection for ever.
  const asked = wire.ask({ op: 'ping' })
  expect(wire.attached).toBeDefined()
  setImmediate(dial)
  expect(await asked).toEqual({})
  await wire.close(new AirlockError('sandbox_ended'))
})

/** A wire, and how a guest comes in that answers every request with nothing. */
async function open(): Promise<{ readonly wire: GuestWire; readonly dial: () => void }> {
  let accept: ((connection: Duplex) => void) | undefined
  const wire = new GuestWire({
    sandbox: 'sbx_test',
    listener: { listen: async (take) => void (accept = take), close: async () => {} },
    log: createLog({ process: 'test', level: 'silent', write: () => {} }),
    hello: async () => [],
    attached: () => {},
    detached: () => {},
    message: async () => {},
    data: () => {},
    flush: async () => {},
  })
  await wire.listen()
  const dial = () => {
    const [ours, theirs] = duplexPair()
    accept?.(ours)
    const decoder = new FrameDecoder()
    theirs.on('data', (chunk: Buffer) => {
      for (const frame of decoder.push(chunk)) {
        const json = frame.kind === 'message' ? (frame.json as { type: string; id: number }) : undefined
        if (json?.type === 'request') theirs.write(encodeMessage({ type: 'result', id: json.id, result: {} }))
      }
    })
    theirs.write(encodeMessage({ type: 'hello', protocol: 1, commands: [] }))
  }
  return { wire, dial }
}
