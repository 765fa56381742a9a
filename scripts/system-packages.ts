import { spawnSync } from 'node:child_process'
import { accessSync, constants, readdirSync } from 'node:fs'
import { argv, exit } from 'node:process'

interface Package {
  readonly name: string
  /** Programs that it brings; any one of them will do. */
  readonly programs: readonly string[]
  readonly why: string
}

/** What a sandbox needs from the system, in the names of Debian and Ubuntu. */
const NEEDED: readonly Package[] = [
  { name: 'crun', programs: ['crun', 'runc'], why: 'starts sandboxes' },
  { name: 'python3', programs: ['python3'], why: 'for code inside, and mounts' },
  { name: 'uidmap', programs: ['newuidmap'], why: 'users of their own' },
  { name: 'util-linux', programs: ['setpriv'], why: 'drops privileges' },
  { name: 'mount', programs: ['losetup'], why: 'disks of sandboxes' },
  { name: 'e2fsprogs', programs: ['mkfs.ext4'], why: 'disks of sandboxes' },
]

/** What tests and optional tiers may ask for with `--with`. */
const EXTRA: readonly Package[] = [
  { name: 'runc', programs: ['runc'], why: 'the other runtime' },
  { name: 'runsc', programs: ['runsc'], why: 'the strict tier' },
  { name: 'docker.io', programs: ['dockerd'], why: 'the docker backend, and tests of the server image' },
  { name: 'docker-compose', programs: ['docker-compose'], why: 'tests of the server image' },
  { name: 'debootstrap', programs: ['debootstrap'], why: 'tests of the server image, and on another host' },
  { name: 'qemu-system-x86', programs: ['qemu-system-x86_64'], why: 'tests on another host' },
  { name: 'golang-go', programs: ['go'], why: 'tests with programs that are built from their Go modules' },
  { name: 'git', programs: ['git'], why: 'tests of our conventions' },
  { name: 'gcc', programs: ['gcc'], why: 'tests of ordinary programs in sandboxes' },
  { name: 'make', programs: ['make'], why: 'the same' },
  { name: 'sqlite3', programs: ['sqlite3'], why: 'the same' },
  { name: 'strace', programs: ['strace'], why: 'tests of what is synced' },
  { name: 'chromium', programs: ['chromium'], why: 'tests of the page' },
  { name: 'openssl', programs: ['openssl'], why: 'tests of clients over TLS' },
  { name: 'postgresql', programs: ['pg_createcluster'], why: 'tests of the other store' },
]

/** Sandboxes see the system's own programs: one in somebody's home directory does not count. */
const DIRECTORIES = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']
const APT = ['apt-get', '-y', '-q', '--no-install-recommends', '-o', 'Dpkg::Use-Pty=0']
const ERROR_CHARS = 4_000

if (argv[1] === import.meta.filename) exit(installMissing(parseExtras(argv.slice(2))) ? 0 : 1)

/** Installs what is missing, or says which command does. Silent when there is nothing to do. */
export function installMissing(extras: readonly string[]): boolean {
  const missing = findMissing([...NEEDED, ...extras.map(extraOf)])
  if (missing.length === 0) return true
  const names = missing.map(({ name }) => name)
  const prefix = installer()
  console.log(`Airlock needs from the system: ${missing.map(({ name, why }) => `${name} (${why})`).join(', ')}.`)
  if (!prefix) {
    console.error(`Install it, then try again:\n\n  sudo apt-get install -y ${names.join(' ')}\n`)
    return false
  }
  return install(prefix, names) && confirm(missing)
}

function install(prefix: readonly string[], names: readonly string[]): boolean {
  const fetched = hasLists() || run([...prefix, ...APT, 'update'], 'Fetching the package lists')
  const command = [...prefix, ...APT, 'install', ...names]
  if (fetched && run(command, `Installing ${names.join(', ')}`, 'quiet')) return true
  // Lists that are too old name packages that are gone.
  return run([...prefix, ...APT, 'update'], 'Fetching the package lists again') && run(command, 'Installing once more')
}

function run(command: readonly string[], label: string, failure: 'shown' | 'quiet' = 'shown'): boolean {
  console.log(`${label}…`)
  const [program = '', ...args] = command
  const done = spawnSync(program, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  })
  if (done.status === 0) return true
  const said = `${done.stdout ?? ''}${done.stderr ?? ''}`.slice(-ERROR_CHARS)
  if (failure === 'shown') console.error(`${said}\nThis failed: ${command.join(' ')}`)
  return false
}

function confirm(packages: readonly Package[]): boolean {
  const still = findMissing(packages)
  for (const { name, programs } of still)
    console.error(`${name} is installed, but ${programs.join(' or ')} is not there.`)
  return still.length === 0
}

/** How this user may run apt, or undefined. */
function installer(): readonly string[] | undefined {
  if (!isProgram('apt-get')) return undefined
  if (process.getuid?.() === 0) return []
  const sudo = ['sudo', '-n', '--preserve-env=DEBIAN_FRONTEND']
  return isProgram('sudo') && spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0 ? sudo : undefined
}

function findMissing(packages: readonly Package[]): readonly Package[] {
  return packages.filter(({ programs }) => !programs.some(isProgram))
}

function isProgram(name: string): boolean {
  return DIRECTORIES.some((directory) => {
    try {
      accessSync(`${directory}/${name}`, constants.X_OK)
      return true
    } catch {
      // Not here; perhaps in the next directory.
      return false
    }
  })
}

function hasLists(): boolean {
  try {
    return readdirSync('/var/lib/apt/lists').some((name) => /Packages|InRelease/.test(name))
  } catch {
    // Never fetched.
    return false
  }
}

function parseExtras(args: readonly string[]): readonly string[] {
  const at = args.indexOf('--with')
  return at === -1 ? [] : (args[at + 1] ?? '').split(',').filter((name) => name !== '')
}

function extraOf(name: string): Package {
  return EXTRA.find((extra) => extra.name === name) ?? { name, programs: [name], why: 'asked for' }
}
