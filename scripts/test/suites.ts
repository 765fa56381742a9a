const QUICK = ['unit', 'style', 'product', 'floods'] as const
const LONG = [
  'crash',
  'runtimes',
  'image',
  'templates',
  'soak',
  'packed',
  'residue',
  'lifecycle',
  'floods-table',
  'peers',
  'vm',
] as const

/** Projects of `vitest.config.ts` by the name of the command: `npm test` and `npm run test:<name>`. */
const SUITES: Readonly<Record<string, readonly string[]>> = {
  test: QUICK,
  gate: [...QUICK, 'postgres', 'gate'],
  long: LONG,
  full: [...QUICK, 'postgres', 'gate', ...LONG],
}

/** Packages of Debian that some projects need. Without them their tests are skipped. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  postgres: ['postgresql'],
  gate: ['postgresql'],
  runtimes: ['runc', 'runsc'],
  image: ['docker.io', 'docker-compose', 'debootstrap'],
  templates: ['docker.io', 'debootstrap'],
  packed: ['openssl'],
  lifecycle: ['postgresql', 'git', 'gcc', 'make', 'sqlite3'],
  peers: ['golang-go'],
  vm: ['debootstrap', 'qemu-system-x86'],
}

export interface Choice {
  readonly projects: readonly string[]
  /** What these projects need from the system. */
  readonly packages: readonly string[]
  /** Arguments for Vitest itself: filters and options. */
  readonly args: readonly string[]
}

/** `<suite> [project…] [argument of Vitest…]`. All projects of the suite when none is named. */
export function choose([suite = '', ...words]: readonly string[]): Choice {
  const all = SUITES[suite]
  if (!all) throw new TypeError(`no suite is called "${suite}": give one of ${Object.keys(SUITES).join(', ')}`)
  const named = all.filter((project) => words.includes(project))
  const projects = named.length > 0 ? named : all
  const packages = suite === 'test' ? [] : [...new Set(projects.flatMap((project) => PACKAGES[project] ?? []))]
  return { projects, packages: ['strace', ...packages], args: words.filter((word) => !all.includes(word)) }
}
