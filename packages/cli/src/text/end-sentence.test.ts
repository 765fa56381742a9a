import type { EndCause } from '@airlock/sdk'
import { expect, it } from 'vitest'
import { endSentence } from './end-sentence.ts'

const MIB = 1024 * 1024
const LIMITS = {
  memoryBytes: 512 * MIB,
  diskBytes: 64 * MIB,
  pids: 256,
  cpus: 1,
  inodes: 1,
  openFiles: 1,
  cpuSeconds: null,
}

it.each<[EndCause, string | null, string | undefined]>([
  ['exit', null, undefined],
  ['signal', 'SIGTERM', undefined],
  ['timeout', 'SIGKILL', 'the command took too long. Raise --timeout.'],
  ['out_of_memory', 'SIGKILL', 'killed: out of memory (limit 512 MiB). Raise --memory.'],
  ['out_of_memory', null, 'failed: out of memory (limit 512 MiB). Raise --memory.'],
  ['pids_exhausted', null, 'failed: too many processes (limit 256). Raise --pids.'],
  ['disk_full', null, 'failed: no space left. /workspace has 64 MiB (--disk), /tmp 128 MiB (a quarter of --memory).'],
  ['cpu_time', 'SIGXCPU', 'killed: it used up its processor time.'],
  ['forbidden_call', 'SIGSYS', 'killed: it made a system call that no sandbox may make.'],
])('says of %s by %s: %s', (cause, signal, sentence) => {
  expect(endSentence({ cause, signal }, LIMITS)).toBe(sentence)
})

it('leaves out limits that it does not know', () => {
  expect(endSentence({ cause: 'disk_full' })).toBe(
    'failed: no space left. Raise --disk for /workspace, --memory for /tmp, or remove files.',
  )
})
