import { showUnknown } from '../../path.ts'
import { isKnown } from '../../reading.ts'
import type { Look, Looked, Shell, Started } from '../started.ts'

interface Interpreter {
  readonly runtime: string
  /** The option whose value is code. */
  readonly code: RegExp
  /** Options that take a value, before a script. */
  readonly valued?: RegExp
}

const PYTHON: Interpreter = { runtime: 'python', code: /^-[A-Za-z]*c$/u, valued: /^-[WXm]$/u }
const NODE: Interpreter = {
  runtime: 'node',
  code: /^(?:-e|-p|-pe|--eval|--print)$/u,
  valued: /^(?:-r|--require|--import)$/u,
}
const PERL: Interpreter = { runtime: 'perl', code: /^-[A-Za-z0-9]*[eE]$/u }
const RUBY: Interpreter = { runtime: 'ruby', code: /^-[A-Za-z]*e$/u, valued: /^-[rI]$/u }
const PHP: Interpreter = { runtime: 'php', code: /^-[rBE]$/u }
const LUA: Interpreter = { runtime: 'lua', code: /^-e$/u }

function interpreter(of: Interpreter): Look {
  return (started, shell) => {
    const { words, sources } = started
    const codes = words.filter((_, at) => of.code.test(words[at - 1] ?? ''))
    if (codes.length > 0) return runCode(codes.join('\n'), { of, sources, shell })
    const glued = words.find((word) => word.startsWith('--eval='))
    if (glued !== undefined) return runCode(glued.slice(7), { of, sources, shell })
    const module = of.runtime === 'python' ? words.indexOf('-m') : -1
    if (module >= 0 && words[module + 1] !== undefined) {
      shell.start(words.slice(module + 1), { stdin: started.stdin, sources })
      return {}
    }
    return runScript(started, of, shell)
  }
}

function runCode(
  code: string,
  { of, sources, shell }: { readonly of: Interpreter; readonly sources: readonly string[]; readonly shell: Shell },
): Looked {
  shell.readCode(of.runtime, code)
  if (isKnown(code)) return {}
  if (sources.length > 0) return { runsOutputOf: sources }
  return showUnknown(code).trim().replace('@', '') === '$' ? { traits: ['unreadable'] } : {}
}

function runScript({ words, stdin, sources }: Started, of: Interpreter, shell: Shell): Looked {
  const script = words.find(
    (word, at) => (!word.startsWith('-') || word === '-') && of.valued?.test(words[at - 1] ?? '') !== true,
  )
  if (words.some((word) => /^(?:-V|-v|--version|-h|--help)$/u.test(word))) return {}
  const readsInput = script === undefined || script === '-' || script === '/dev/stdin'
  const content = readsInput ? stdin : shell.file(script)
  if (content === undefined) return {}
  if (content.text !== undefined) return runCode(content.text, { of, sources: [...sources, ...content.sources], shell })
  return content.sources.length === 0 ? {} : { runsOutputOf: content.sources }
}

export const INTERPRETERS: Readonly<Record<string, Look>> = {
  python: interpreter(PYTHON),
  pypy: interpreter(PYTHON),
  node: interpreter(NODE),
  nodejs: interpreter(NODE),
  bun: interpreter(NODE),
  deno: interpreter({ runtime: 'node', code: /^eval$/u, valued: /^run$/u }),
  perl: interpreter(PERL),
  ruby: interpreter(RUBY),
  php: interpreter(PHP),
  lua: interpreter(LUA),
}
