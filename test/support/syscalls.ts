import { readFileSync } from 'node:fs'

const STRACE = '/usr/bin/strace'
const MAX_SHOWN = '65536'

/** What a process asked of the kernel, by strace: `trace=write,fdatasync` and the like, in the order in which it was done. */
export interface Syscall {
  readonly name: string
  /** As strace prints them; descriptors with their paths. */
  readonly args: string
}

/** Options for `fork` that run the child under strace. Its signals go to strace: end it by its channel. */
export function traced(names: readonly string[], file: string): { execPath: string; execArgv: string[] } {
  const options = ['-f', '-qq', '-y', '-s', MAX_SHOWN, '-e', `trace=${names.join(',')}`, '-e', 'signal=none']
  return { execPath: STRACE, execArgv: [...options, '-o', file, process.execPath] }
}

/** Those that succeeded, each where it ended: one that waits is printed in two halves. */
export function readSyscalls(file: string): readonly Syscall[] {
  const begun = new Map<string, string>()
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => {
      const [, thread = '', call = ''] = /^(\d+) +(.*)$/.exec(line) ?? []
      if (call.endsWith(' <unfinished ...>')) {
        begun.set(thread, call.slice(0, -' <unfinished ...>'.length))
        return []
      }
      return parseCall(call.replace(/^<\.\.\. \w+ resumed>/, () => begun.get(thread) ?? ''))
    })
}

function parseCall(call: string): readonly Syscall[] {
  const found = /^(\w+)\((.*)\)\s+= \d/.exec(call)
  return found ? [{ name: found[1] ?? '', args: found[2] ?? '' }] : []
}
