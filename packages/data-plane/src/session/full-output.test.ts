import { readdirSync } from 'node:fs'
import { waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FULL_OUTPUT_BYTES } from './full-output.ts'
import { RealGuest } from './testing/real-guest.ts'

const isRoot = process.getuid?.() === 0

describe.skipIf(!isRoot)('the full output of a command', () => {
  let guest: RealGuest
  beforeAll(async () => {
    guest = await RealGuest.start()
  })
  afterAll(async () => {
    await guest.stop()
  })
  const fullOf = async (id: string): Promise<string | undefined> => {
    const read = await guest.vault.read(id)
    return read && Buffer.concat(await Array.fromAsync(read.bytes)).toString()
  }
  const numbers = (to: number): string => Array.from({ length: to }, (_, at) => `${at + 1}\n`).join('')

  it('is kept where it was more than the caller wants, both streams as they came', async () => {
    const { stdout, command } = await guest.sh('seq 1000; sleep 0.2; echo late >&2', { maxOutputBytes: 100 })
    const whole = `${numbers(1000)}late\n`
    expect(String(stdout)).toBe(whole.slice(0, 100))
    expect(command).toMatchObject({
      truncated: true,
      outputBytes: 100,
      full: { bytes: whole.length, truncated: false },
    })
    expect(await fullOf(command.id)).toBe(whole)
    expect(readdirSync(guest.spoolDir).filter((name) => name.endsWith('.full'))).toEqual([])
  })

  it('is not kept where it was not too much, or nobody wants any', async () => {
    const enough = await guest.sh('echo enough')
    const none = await guest.sh('echo nothing', { maxOutputBytes: 0 })
    expect([enough.command.full, none.command.full]).toEqual([undefined, undefined])
    expect([none.command.truncated, await fullOf(none.command.id)]).toEqual([true, undefined])
  })

  it('is cut at a bound of its own, and says so', async () => {
    const { command } = await guest.sh(`head -c ${FULL_OUTPUT_BYTES + 1} /dev/zero`, { maxOutputBytes: 1000 })
    expect(command).toMatchObject({ truncated: true, full: { bytes: FULL_OUTPUT_BYTES, truncated: true } })
    await guest.vault.remove(command.id)
  })

  it('goes on over the death of the host process without a byte twice or missing', async () => {
    const line = 'seq 20000; while [ ! -e go ]; do sleep 0.05; done; seq 20000; rm go'
    const id = await guest.start(['/bin/sh', '-c', line], { maxOutputBytes: 5000 })
    const isOver = () => guest.link.commands.get(id).truncated || undefined
    await waitFor(isOver, { signal: AbortSignal.timeout(100_000), everyMs: 20 })
    await guest.restartLink()
    await guest.sh('touch go')
    const command = await guest.link.commands.wait(id)
    const whole = numbers(20_000).repeat(2)
    expect(command).toMatchObject({ truncated: true, full: { bytes: whole.length, truncated: false } })
    expect((await fullOf(id)) === whole).toBe(true)
  })
})
