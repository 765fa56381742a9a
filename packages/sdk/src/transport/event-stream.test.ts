import { afterEach, describe, expect, it, vi } from 'vitest'
import { Patience } from './event-stream.ts'

describe('the patience with a stream that broke', () => {
  let laterMs = 0
  afterEach(() => vi.restoreAllMocks())

  function start(): Patience {
    const now = performance.now.bind(performance)
    laterMs = 0
    vi.spyOn(performance, 'now').mockImplementation(() => now() + laterMs)
    return new Patience(undefined)
  }

  it('ends after a minute in which nothing was achieved', async () => {
    const patience = start()
    await patience.pause()
    laterMs = 61_000
    await expect(patience.pause()).rejects.toMatchObject({
      code: 'server_unreachable',
      message: 'The stream broke and could not be resumed.',
    })
  })

  it('does not count the time of a stream that lived', async () => {
    const patience = start()
    laterMs = 600_000
    await patience.pause(true)
    laterMs += 59_000
    await patience.pause()
    expect(patience).toBeInstanceOf(Patience)
  })
})
