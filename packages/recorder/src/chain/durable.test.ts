import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { requires } from '../../../../test/support/requires.ts'
import { readSyscalls, type Syscall, traced } from '../../../../test/support/syscalls.ts'
import { aRecord, RecorderProcess } from '../testing/recorder-process.ts'

const CALLS = ['pwrite64', 'fdatasync', 'fsync', 'write', 'writev', 'sendmsg', 'sendto']

describe.concurrent('a record that is acknowledged', requires('strace'), () => {
  it('was synced before, and so was the name of its file', async () => {
    await using recorder = new RecorderProcess()
    const trace = join(recorder.home, 'trace')
    await recorder.start(null, traced(CALLS, trace))
    await recorder.client().require(aRecord(1))
    await recorder.stop()
    const calls = readSyscalls(trace)
    const written = calls.findIndex(({ name, args }) => name === 'pwrite64' && args.includes(String.raw`\"n\":1`))
    const answered = answerIn(calls)
    expect(written).toBeGreaterThanOrEqual(0)
    expect(answered).toBeGreaterThan(written)
    expect(syncedIn(calls.slice(written, answered))).toContain(
      join(recorder.chainDir('default'), '000000000001.ndjson'),
    )
    expect(syncedIn(calls.slice(0, answered))).toEqual(
      expect.arrayContaining([recorder.chainDir('default'), join(recorder.stateDir, 'chains')]),
    )
  })

  it('was synced also when an earlier life wrote it, and died before it could sync', async () => {
    await using recorder = new RecorderProcess()
    await recorder.start('record.written:recorder')
    const required = recorder.client().require(aRecord(1))
    await recorder.exited
    const trace = join(recorder.home, 'trace')
    await recorder.start(null, traced(CALLS, trace))
    await required
    await recorder.stop()
    const calls = readSyscalls(trace)
    expect(syncedIn(calls.slice(0, answerIn(calls)))).toEqual(
      expect.arrayContaining([
        join(recorder.chainDir('default'), '000000000001.ndjson'),
        recorder.chainDir('default'),
        join(recorder.stateDir, 'chains'),
      ]),
    )
  })
})

describe('the keys of the recorder', requires('strace'), () => {
  it('are synced, with their names, before they sign anything', async () => {
    await using recorder = new RecorderProcess()
    const trace = join(recorder.home, 'trace')
    await recorder.start(null, traced(CALLS, trace))
    await recorder.stop()
    const keys = join(recorder.stateDir, 'keys')
    const calls = readSyscalls(trace)
    const first = calls.findIndex(({ name, args }) => name === 'pwrite64' && args.includes('ndjson'))
    expect(syncedIn(calls.slice(0, first))).toEqual(
      expect.arrayContaining([join(keys, 'head.pem.new'), join(keys, 'mac.key.new'), keys, recorder.stateDir]),
    )
  })
})

/** Where the client was told that its record is durable. */
function answerIn(calls: readonly Syscall[]): number {
  return calls.findIndex(({ name, args }) => name.startsWith('write') && args.includes(String.raw`\"type\":\"ok\"`))
}

function syncedIn(calls: readonly Syscall[]): readonly string[] {
  return calls.filter(({ name }) => name.endsWith('sync')).map(({ args }) => /<(.*)>/.exec(args)?.[1] ?? '')
}
