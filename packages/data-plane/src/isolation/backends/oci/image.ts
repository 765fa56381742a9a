import { INSIDE } from '@airlock/contract/guest'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Bind } from './groups/groups.ts'

/** A root file system: a directory of mount points and small files, and what of the host is bound into it. */
export interface Image {
  readonly rootfs: string
  /** Where the guest and its Node are bound, with a placeholder for each. */
  readonly program: string
  readonly binds: readonly Bind[]
}

/** Counts up whenever the code below makes something else of the same tables. */
const RECIPE_VERSION = 2

/** Parents first. */
const DIRECTORIES = [
  '',
  'dev',
  'etc',
  'etc/ssl',
  'home',
  'opt',
  'proc',
  'run',
  'tmp',
  'usr',
  'var',
  INSIDE.home.slice(1),
  INSIDE.program.slice(1),
  INSIDE.workspace.slice(1),
] as const

const LINKS = { 'var/tmp': '/tmp', 'var/run': '/run' } as const

const FILES = {
  'etc/passwd': [
    'root:x:0:0:root:/root:/usr/sbin/nologin',
    'user:x:1000:1000:user:/home/user:/bin/sh',
    'nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin',
  ],
  'etc/group': ['root:x:0:', 'tty:x:5:', 'user:x:1000:', 'nogroup:x:65534:'],
  'etc/hosts': ['127.0.0.1 localhost', '::1 localhost', '127.0.0.1 sandbox'],
  'etc/hostname': ['sandbox'],
  'etc/nsswitch.conf': ['passwd: files', 'group: files', 'hosts: files', 'services: files', 'protocols: files'],
  // Nobody to ask: names beyond the hosts file do not resolve.
  'etc/resolv.conf': [],
} as const

/** Parts of the host's /etc that programs in /usr need. Nothing else of it is visible inside. */
const ETC = /^(?:alternatives|ld\.so\.cache|python3.*)$/u

/** Real directories on hosts that did not merge them into /usr. */
const OUTSIDE_USR = /^(?:bin|sbin|lib(?:32|64|x32)?)$/u

/**
 * The image `host`: this host's /usr, read-only, under a root of our own. Named after what is in it, and never changed or
 * removed: sandboxes that run stand on it.
 */
export function makeHostImage(stateDir: string): Image {
  const binds = hostBinds()
  const links = { ...LINKS, ...hostLinks() }
  const recipe = JSON.stringify([RECIPE_VERSION, DIRECTORIES, links, FILES, binds])
  const dir = join(stateDir, 'images', `host-${createHash('sha256').update(recipe).digest('hex').slice(0, 8)}`)
  const image = { rootfs: join(dir, 'rootfs'), program: join(dir, 'program'), binds }
  if (existsSync(dir)) return image
  const fresh = `${dir}.new`
  rmSync(fresh, { recursive: true, force: true })
  makeRootfs(join(fresh, 'rootfs'), binds, links)
  makeProgram(join(fresh, 'program'))
  renameSync(fresh, dir)
  return image
}

function makeRootfs(rootfs: string, binds: readonly Bind[], links: Readonly<Record<string, string>>): void {
  for (const name of DIRECTORIES) makeDirectory(join(rootfs, name))
  // A runtime may give a mount the mode of what it covers.
  chmodSync(join(rootfs, 'tmp'), 0o1777)
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(rootfs, name))
  for (const [name, lines] of Object.entries(FILES))
    makeFile(join(rootfs, name), lines.map((line) => `${line}\n`).join(''))
  for (const { source, destination } of binds) {
    if (lstatSync(source).isDirectory()) makeDirectory(join(rootfs, destination))
    else makeFile(join(rootfs, destination), '')
  }
}

function makeProgram(program: string): void {
  makeDirectory(program)
  makeDirectory(join(program, 'bin'))
  makeFile(join(program, 'bin', 'node'), '')
  makeFile(join(program, 'guest.cjs'), '')
}

/** Links of a host whose /bin and the like are in /usr. */
function hostLinks(): Readonly<Record<string, string>> {
  const links = readdirSync('/', { withFileTypes: true }).filter(
    (entry) => entry.isSymbolicLink() && OUTSIDE_USR.test(entry.name),
  )
  return Object.fromEntries(links.map(({ name }) => [name, readlinkSync(join('/', name))]))
}

function hostBinds(): readonly Bind[] {
  const unmerged = readdirSync('/', { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && OUTSIDE_USR.test(entry.name))
    .map(({ name }) => `/${name}`)
  const etc = readdirSync('/etc')
    .filter((name) => ETC.test(name))
    .map((name) => `/etc/${name}`)
  const certificates = ['/etc/ssl/certs'].filter((path) => existsSync(path))
  return ['/usr', ...unmerged, ...etc, ...certificates].map((path) => ({ source: path, destination: path }))
}

/** Whatever the umask is: the sandbox's root is nobody here. */
function makeDirectory(path: string): void {
  mkdirSync(path, { recursive: true })
  chmodSync(path, 0o755)
}

function makeFile(path: string, text: string): void {
  writeFileSync(path, text)
  chmodSync(path, 0o644)
}
