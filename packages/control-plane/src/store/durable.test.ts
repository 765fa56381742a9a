import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { requires } from '../../../../test/support/requires.ts'
import { readSyscalls, traced } from '../../../../test/support/syscalls.ts'

const COMMIT = new URL('testing/commit.ts', import.meta.url).pathname

it('has synced what it wrote when a commit to SQLite is done', requires('strace'), async () => {
  const dir = mkdtempSync(join(tmpdir(), 'airlock-durable-'))
  try {
    const file = join(dir, 'store.db')
    const trace = join(dir, 'trace')
    const child = fork(COMMIT, [file], { ...traced(['fdatasync', 'fsync', 'pwrite64', 'write'], trace), silent: true })
    expect(await once(child, 'exit')).toEqual([0, null])
    const calls = readSyscalls(trace)
    const said = (word: string) =>
      calls.findIndex(({ name, args }) => name === 'write' && args.includes(`"${word}\\n"`))
    for (const [from, to] of [
      ['opened', 'first'],
      ['first', 'second'],
    ] as const) {
      const between = calls.slice(said(from), said(to)).filter(({ args }) => args.includes(`${file}-wal`))
      expect(between.map(({ name }) => name).at(-1)).toMatch(/sync$/)
      expect(between.map(({ name }) => name)).toContain('pwrite64')
    }
  } finally {
    rmSync(dir, { recursive: true })
  }
})
