import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { requires } from '../../../../../test/support/requires.ts'
import { FORBIDDEN_CALLS } from './forbidden-calls.ts'
import { makeProbeProgram, readProbeOutput } from './probe-program.ts'
import { readProbe } from './probes.ts'

const AS_USER = ['--reuid=1000', '--regid=1000', '--clear-groups', '--inh-caps=-all', '--bounding-set=-all']

describe('the probe of forbidden calls', () => {
  it('finds them working where there is no filter', requires('root'), () => {
    const output = runOnHost(makeProbeProgram())
    const { tried, passed } = readProbe({ exitCode: 0, output }, 'standard')
    expect(tried).toBe(FORBIDDEN_CALLS.length)
    // What else stops a user without rights differs between hosts; these are stopped by nothing but a filter.
    expect(passed).toEqual(expect.arrayContaining(['keyctl', 'unshare', 'clone NEWUSER', 'mount', 'ioctl TIOCSTI']))
  })

  it('takes no output for less than all of it', () => {
    const whole = Buffer.alloc((FORBIDDEN_CALLS.length + 1) * 64, 0xff)
    expect(() => readProbeOutput(whole)).toThrow('did not end')
    whole.writeBigInt64LE(7n, FORBIDDEN_CALLS.length * 64)
    expect(readProbeOutput(whole)).toEqual(FORBIDDEN_CALLS.map(({ name }) => ({ name, result: -1 })))
    expect(() => readProbeOutput(whole.subarray(64))).toThrow('did not end')
    expect(() => readProbe({ exitCode: 159, output: whole }, 'standard')).toThrow('did not run')
    expect(() => readProbe(undefined, 'standard')).toThrow('did not run')
  })

  it('counts as refused only EPERM and ENOSYS', () => {
    const output = Buffer.alloc((FORBIDDEN_CALLS.length + 1) * 64, 0xff)
    output.writeBigInt64LE(7n, FORBIDDEN_CALLS.length * 64)
    output.writeBigInt64LE(-38n, 0)
    output.writeBigInt64LE(-14n, 64)
    output.writeBigInt64LE(0n, 128)
    const { passed } = readProbe({ exitCode: 0, output }, 'standard')
    expect(passed).toEqual(FORBIDDEN_CALLS.slice(1, 3).map(({ name }) => name))
  })

  it('is there for both machines that have a list of calls, and for no other', () => {
    expect(['x64', 'arm64'].map((arch) => makeProbeProgram(arch).readUInt16LE(18))).toEqual([62, 183])
    expect(() => makeProbeProgram('riscv64')).toThrow('no probe')
  })

  it('has a name for each call, and only one', () => {
    const names = FORBIDDEN_CALLS.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
  })
})

function runOnHost(program: Buffer): Buffer {
  const directory = mkdtempSync(join(tmpdir(), 'airlock-probe-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  chmodSync(directory, 0o755)
  const path = join(directory, 'probe')
  writeFileSync(path, program)
  chmodSync(path, 0o755)
  return execFileSync('setpriv', [...AS_USER, '--', path])
}
