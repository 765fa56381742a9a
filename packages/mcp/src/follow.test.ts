import { AirlockError } from '@airlock/contract'
import { sleep } from '@airlock/std'
import { describe, expect, it } from 'vitest'
import { follow } from './follow.ts'

type Event = { readonly event: 'started' | 'output' | 'ended' }

/** Something that runs until it is stopped, and says so. */
class Running {
  readonly seen: string[] = []
  readonly #stopped = new AbortController()
  readonly #begins: Promise<unknown>

  constructor(begins: Promise<unknown> = Promise.resolve()) {
    this.#begins = begins
  }

  async *open(listening: AbortSignal): AsyncGenerator<Event> {
    await this.#begins
    yield { event: 'started' }
    await sleep(60_000, AbortSignal.any([listening, this.#stopped.signal])).catch(() => undefined)
    if (listening.aborted && !this.#stopped.signal.aborted) throw new AirlockError('internal', 'nobody listens')
    yield { event: 'ended' }
  }

  readonly stop = async (): Promise<void> => {
    this.seen.push('stop')
    this.#stopped.abort()
  }

  follow(signal: AbortSignal): Promise<void> {
    return follow<Event>({
      signal,
      open: (listening) => this.open(listening),
      onEvent: ({ event }) => void this.seen.push(event),
      stop: this.stop,
    })
  }
}

describe('following what runs in a sandbox', () => {
  it('passes every event on and ends with the stream', async () => {
    const seen: string[] = []
    await follow<Event>({
      signal: new AbortController().signal,
      open: async function* () {
        yield { event: 'started' }
        yield { event: 'output' }
        yield { event: 'ended' }
      },
      onEvent: ({ event }) => void seen.push(event),
      stop: async () => void seen.push('stop'),
    })
    expect(seen).toEqual(['started', 'output', 'ended'])
  })

  it('stops it when the caller calls it off, once, and throws the reason', async () => {
    const running = new Running()
    const caller = new AbortController()
    const followed = running.follow(caller.signal)
    await sleep(5)
    caller.abort(new TypeError('no longer wanted'))
    await expect(followed).rejects.toThrow('no longer wanted')
    expect(running.seen.filter((word) => word === 'stop')).toEqual(['stop'])
  })

  it('waits for it to begin when it is called off before, and stops it then', async () => {
    const begins = Promise.withResolvers<void>()
    const running = new Running(begins.promise)
    const caller = new AbortController()
    const followed = running.follow(caller.signal)
    caller.abort(new TypeError('too late'))
    await sleep(5)
    expect(running.seen).toEqual([])
    begins.resolve()
    await expect(followed).rejects.toThrow('too late')
    expect(running.seen).toContain('stop')
  })

  it('opens nothing for a caller who has gone already', async () => {
    const running = new Running()
    await expect(running.follow(AbortSignal.abort(new TypeError('gone')))).rejects.toThrow('gone')
    expect(running.seen).toEqual([])
  })

  it('throws an error of the stream with its code', async () => {
    const failed = follow<{ event: 'error'; error: { code: string; message: string; hint: string } }>({
      signal: new AbortController().signal,
      open: async function* () {
        yield { event: 'error', error: { code: 'guest_lost', message: 'It broke down.', hint: 'Make another.' } }
      },
      onEvent: () => undefined,
      stop: async () => undefined,
    })
    await expect(failed).rejects.toMatchObject({ code: 'guest_lost', message: 'It broke down.', hint: 'Make another.' })
  })
})
