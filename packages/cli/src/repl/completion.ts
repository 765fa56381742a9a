import type { Runtime, Session } from '@airlock/sdk'

const TIMEOUT_MS = 3000
const SHOWN = 100
const MAX_NAME = 200

interface Completing {
  /** The end of the line that is completed. */
  readonly word: RegExp
  /** Code that prints one name a line. The word has nothing in it that ends a string. */
  readonly code: (word: string, isFirst: boolean) => string
}

const COMPLETING: Readonly<Record<Runtime, Completing>> = {
  python: {
    word: /[A-Za-z_][\w.]*$/,
    code: (word) =>
      `(lambda c: [print(m) for m in (c.complete('${word}', i) for i in range(${SHOWN})) if m] and None)(__import__('rlcompleter').Completer(globals()))`,
  },
  node: {
    word: /[A-Za-z_$][\w$.]*$/,
    code: (word) => {
      const dot = word.lastIndexOf('.')
      const [path, begin] = dot === -1 ? ['globalThis', word] : [word.slice(0, dot), word.slice(dot + 1)]
      const prefix = dot === -1 ? '' : `${path}.`
      return (
        `((o) => { const names = new Set(); for (let p = Object(o); p; p = Object.getPrototypeOf(p)) ` +
        `for (const n of Object.getOwnPropertyNames(p)) if (n.startsWith('${begin}')) names.add(n); ` +
        `for (const n of [...names].slice(0, ${SHOWN})) console.log('${prefix}' + n) })(${path})`
      )
    },
  },
  bash: {
    word: /[\w./~+-]*$/,
    code: (word, isFirst) => {
      const kinds = isFirst && !word.includes('/') ? '-A function -A alias -A builtin -A command' : '-A file'
      return `compgen ${kinds} -- '${word}' | head -n ${SHOWN}`
    },
  },
}

/**
 * Completions of the last word of a line, asked of the interpreter, for it alone knows its names. Answers none when it is slow, or when a
 * rule denies it: a key that completes nothing is not worth a message.
 */
export async function complete(session: Session, line: string): Promise<[string[], string]> {
  const { word: pattern, code } = COMPLETING[session.runtime]
  const word = pattern.exec(line)?.[0] ?? ''
  if (word === '') return [[], line]
  const isFirst = line.trimStart() === word
  try {
    const { status, stdout } = await session.run(code(word, isFirst), { timeoutMs: TIMEOUT_MS })
    if (status !== 'completed') return [[], word]
    // Names come out of a sandbox: only plain ones get onto the terminal.
    const names = stdout.split('\n').filter((name) => name.startsWith(word) && isPlain(name))
    return [[...new Set(names)].slice(0, SHOWN), word]
  } catch {
    return [[], word]
  }
}

function isPlain(name: string): boolean {
  return name.length <= MAX_NAME && /^[\u0021-\u007E]+$/.test(name)
}
