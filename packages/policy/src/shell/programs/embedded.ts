import { UNKNOWN } from '../../path.ts'
import type { Look, Shell, Started } from '../started.ts'

/** Options of programs that are lines for a shell: where the line stands in a word, or in the one after an option. */
interface Embedded {
  readonly words?: readonly RegExp[]
  readonly after?: RegExp
}

const LINES: Readonly<Record<string, Embedded>> = {
  git: {
    words: [
      /^(?:alias\.[^=]+=)?!(.+)$/su,
      /^core\.(?:pager|editor|sshcommand|fsmonitor|askpass)=(.+)$/isu,
      /^(?:diff\.external|credential\.helper|sequence\.editor|gpg\.program)=!?(.+)$/isu,
      /^--(?:upload-pack|receive-pack|exec|tree-filter|index-filter|msg-filter|extcmd)=(.+)$/su,
    ],
    after: /^(?:-x|--exec|--tree-filter|--index-filter|--msg-filter|--extcmd|foreach|run)$/u,
  },
  tar: {
    words: [
      /^--checkpoint-action=exec=(.+)$/su,
      /^--(?:to-command|use-compress-program|info-script|new-volume-script|rsh-command)=(.+)$/su,
    ],
    after: /^(?:-I|-F|--to-command|--use-compress-program|--info-script|--rsh-command)$/u,
  },
  ssh: { words: [/^(?:-o\s*)?(?:ProxyCommand|LocalCommand|KnownHostsCommand)[= ](.+)$/isu] },
  scp: { words: [/^(?:-o\s*)?ProxyCommand[= ](.+)$/isu], after: /^-S$/u },
  sftp: { words: [/^(?:-o\s*)?ProxyCommand[= ](.+)$/isu], after: /^-S$/u },
  rsync: { words: [/^--rsh=(.+)$/su], after: /^(?:-e|--rsh)$/u },
  vim: { words: [/^\+?:*\s*(?:silent\s*)?!+(.+)$/su] },
  man: { words: [/^--pager=(.+)$/su], after: /^-P$/u },
  zip: { words: [/^-TT(.+)$/su, /^--unzip-command=(.+)$/su], after: /^(?:-TT|--unzip-command)$/u },
  make: { words: [/^--eval=[^\n]*?[;:]\s*;?\s*(.+)$/su], after: /^--eval$/u },
  nmap: { after: /^--interactive$/u },
  sqlite3: { words: [/^\.(?:shell|system)\s+(.+)$/su] },
  tcpdump: { after: /^-z$/u },
  expect: { words: [/^\s*(?:spawn|exec|system)\s(.+)$/su] },
  crontab: {},
}

/** Lines of a makefile that run something begin with a tab. */
const make: Look = (started, shell) => {
  const makefile = started.stdin?.text
  if (makefile !== undefined)
    for (const line of makefile.split('\n').slice(0, 256)) {
      const recipe = /^(?:\t|[^\t:=#]+:[^;=]*;)[@+-]*(.+)$/u.exec(line)?.[1]
      if (recipe !== undefined) shell.run(recipe, { positionals: [] })
    }
  return runLines(started, shell)
}

function runLines({ program, words }: Started, shell: Shell): { readonly traits?: never } {
  const { words: patterns = [], after } = LINES[ALIASES[program] ?? program] ?? {}
  for (const [at, word] of words.entries()) {
    const line = after?.test(words[at - 1] ?? '') === true ? word : firstGroup(patterns, word)
    if (line !== undefined) shell.run(line.replace(/^!/u, ''), { positionals: [] })
  }
  return {}
}

const ALIASES: Readonly<Record<string, string>> = {
  vi: 'vim',
  nvim: 'vim',
  ex: 'vim',
  view: 'vim',
  gvim: 'vim',
  bsdtar: 'tar',
  gmake: 'make',
}

function firstGroup(patterns: readonly RegExp[], word: string): string | undefined {
  for (const pattern of patterns) {
    const line = pattern.exec(word)?.at(-1)
    if (line !== undefined) return line
  }
  return undefined
}

/** `1e command`, and `s/x/command/e`. */
const sed: Look = ({ words }, shell) => {
  for (const word of words.map((word) => word.slice(0, MAX_SED))) {
    const executed = /^[\d$/,\s]*e\s+(.+)$/su.exec(word)?.[1] ?? substituted(word)
    if (executed !== undefined) shell.run(executed, { positionals: [] })
  }
  return {}
}

const MAX_SED = 4096

/** What `s` puts in, when its flags say that it is run. */
function substituted(script: string): string | undefined {
  const begin = /^[\d$,\s]*s(?=[^\w\s\\])/u.exec(script)?.[0].length
  if (begin === undefined) return undefined
  const delimiter = script.charAt(begin)
  const parts = ['']
  for (let at = begin + 1; at < script.length; at++) {
    const char = script.charAt(at)
    if (char === '\\') parts[parts.length - 1] += char + script.charAt(++at)
    else if (char === delimiter) parts.push('')
    else parts[parts.length - 1] += char
  }
  return /^[gip\d]*e/u.test(parts[2] ?? '') ? parts[1] : undefined
}

/** `system("…")`, `"…" | getline` and `print | "…"` in the program of awk. */
const awk: Look = ({ words }, shell) => {
  const text = words.find((word, at) => !word.startsWith('-') && !/^-[vFf]$/u.test(words[at - 1] ?? ''))
  if (text === undefined) return {}
  const found = [...text.matchAll(/\bsystem\s*\(([^)]*)\)?|\|&?\s*("[^"]*")|("(?:[^"\\]|\\.)*")\s*\|&?\s*getline/gsu)]
  const stdin = { text: undefined, sources: ['awk'] }
  for (const [, call, into, from] of found.slice(0, 16))
    shell.run(awkText(call ?? into ?? from ?? ''), { positionals: [], stdin: into === undefined ? undefined : stdin })
  return {}
}

/** Its strings as they stand, and UNKNOWN for what lies between them. */
function awkText(expression: string): string {
  const pieces = expression.match(/"(?:[^"\\]|\\.)*"|[^"]+/gsu) ?? []
  return pieces
    .map((piece) =>
      piece.startsWith('"') ? piece.slice(1, -1).replaceAll(/\\(.)/gsu, '$1') : piece.trim() === '' ? '' : UNKNOWN,
    )
    .join('')
}

export const EMBEDDED: Readonly<Record<string, Look>> = {
  ...Object.fromEntries([...Object.keys(LINES), ...Object.keys(ALIASES)].map((name) => [name, runLines])),
  make,
  gmake: make,
  sed,
  gsed: sed,
  awk,
  gawk: awk,
  mawk: awk,
  nawk: awk,
}
