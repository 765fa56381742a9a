/** What a program writes beside its output, of those whose arguments say it. */
export function writtenPlaces(invocation: Written): readonly string[] {
  const find = Object.hasOwn(WRITERS, invocation.program) ? WRITERS[invocation.program] : undefined
  return find === undefined ? [] : find(invocation)
}

interface Written {
  readonly program: string
  readonly words: readonly string[]
  readonly flags: readonly string[]
  readonly positionals: readonly string[]
}

type Find = (invocation: Written) => readonly string[]

const last: Find = ({ words, positionals }) => {
  const directory = valueOf(words, ['-t', '--target-directory'])
  return directory.length > 0 ? directory : positionals.slice(-1)
}
const outputFile: Find = ({ words }) => words.filter((word) => word.startsWith('of=')).map((word) => word.slice(3))
const every: Find = ({ positionals }) => positionals

const WRITERS: Readonly<Record<string, Find>> = {
  tee: every,
  truncate: every,
  touch: every,
  mkdir: every,
  shred: every,
  cp: last,
  mv: last,
  ln: last,
  install: last,
  rsync: last,
  scp: last,
  dd: outputFile,
  dcfldd: outputFile,
  dc3dd: outputFile,
  ddrescue: last,
  dd_rescue: last,
  sed: ({ flags, positionals }) => (flags.some(isInPlace) ? positionals : []),
  perl: ({ flags, positionals }) => (flags.some(isInPlace) ? positionals : []),
  sort: ({ words }) => valueOf(words, ['-o', '--output']),
  curl: ({ words }) => valueOf(words, ['-o', '--output']),
  wget: ({ words }) => valueOf(words, ['-O', '--output-document']),
}

function isInPlace(flag: string): boolean {
  return flag.startsWith('-i') || flag === '--in-place'
}

/** The value of a flag: the next word, or what follows its `=`. */
export function valueOf(words: readonly string[], names: readonly string[]): readonly string[] {
  return words.flatMap((word, at) => {
    if (names.includes(word)) return words.slice(at + 1, at + 2)
    const name = names.find((name) => word.startsWith(name.startsWith('--') ? `${name}=` : name))
    if (name === undefined) return []
    return [word.slice(name.startsWith('--') ? name.length + 1 : name.length)]
  })
}
