import { Invocation, type Call, type CodeText, type Reading } from '../reading.ts'
import { WORKSPACE } from '../path.ts'
import { Exhausted } from '../shell/budget.ts'
import { findCalls } from './calls.ts'
import { tokenize } from './tokens.ts'

/** Longer code is looked at only so far; how far is a bound of every pattern too. */
const MAX_LENGTH = 128 * 1024
const MAX_DEPTH = 3
const CHARACTERS_PER_STEP = 64

/** How a line for a shell, found in code, is read, and how work is counted. */
export interface CodeReader {
  readonly readLine: (line: string) => readonly Invocation[]
  readonly spend: (work: number) => void
}

/** What is called in code, and which programs it starts by literal texts. It guesses nothing: code can hide whatever it wants. */
export function readCode(runtime: string, code: string, reader: CodeReader): Omit<Reading, 'work'> {
  const codes: CodeText[] = []
  const invocations: Invocation[] = []
  const isWhole = wasRead(() => read({ runtime, code, depth: 0 }, { codes, invocations, reader }))
  if (!isWhole || code.length > MAX_LENGTH)
    invocations.push(new Invocation({ program: '', words: [], cwd: WORKSPACE, traits: ['unreadable'] }))
  return { codes, invocations }
}

function wasRead(read: () => void): boolean {
  try {
    read()
    return true
  } catch (error) {
    if (error instanceof Exhausted) return false
    throw error
  }
}

interface Found {
  readonly codes: CodeText[]
  readonly invocations: Invocation[]
  readonly reader: CodeReader
}

function read({ runtime, code, depth }: { runtime: string; code: string; depth: number }, found: Found): void {
  const text = code.slice(0, MAX_LENGTH)
  const { spend } = found.reader
  const calls: Call[] = []
  // Patterns look at all of it, whatever was understood.
  found.codes.push({ runtime, code: text, calls })
  spend(text.length / CHARACTERS_PER_STEP)
  for (const call of findCalls(runtime, tokenize(runtime, text, spend), spend)) calls.push(call)
  for (const call of calls) {
    const last = call.name.slice(call.name.lastIndexOf('.') + 1)
    const [first] = call.strings
    if (first === undefined) continue
    if (CODE.has(last) && depth < MAX_DEPTH && !(runtime !== 'python' && last === 'exec'))
      read({ runtime, code: first, depth: depth + 1 }, found)
    if (STARTS.has(last) || /^(?:exec|spawn)[lv]p?e?$/u.test(last)) start(call, first, found)
  }
}

/** A line, or an argv. */
function start(call: Call, first: string, { invocations, reader }: Found): void {
  if (/\s/u.test(first.trim()) || call.strings.length === 1) {
    for (const invocation of reader.readLine(first))
      if (!invocation.traits.includes('unreadable')) invocations.push(invocation)
    return
  }
  const argv = call.strings.slice(0, 64)
  const words = argv.map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`)
  for (const invocation of reader.readLine(words.join(' ')))
    if (!invocation.traits.includes('unreadable')) invocations.push(invocation)
}

const CODE = new Set(['exec', 'eval', 'Function', 'compile', 'runInThisContext', 'runInNewContext', 'instance_eval'])
const STARTS = new Set([
  'system',
  'popen',
  'Popen',
  'run',
  'call',
  'check_call',
  'check_output',
  'getoutput',
  'getstatusoutput',
  'create_subprocess_shell',
  'create_subprocess_exec',
  'spawn',
  'exec',
  'execSync',
  'execFile',
  'execFileSync',
  'spawnSync',
  'fork',
  'shell_exec',
  'passthru',
  'proc_open',
  'execute',
  'qx',
])
