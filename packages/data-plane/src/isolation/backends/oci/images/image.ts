import { INSIDE } from '@airlock/contract/guest'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Bind } from '../groups/groups.ts'
import { syncTree } from './sync-tree.ts'

/** What a sandbox stands on, all of it read-only. */
export interface Image {
  readonly name: string
  /** Directories that lie over each other, the topmost first: together they are the root. */
  readonly root: readonly string[]
  /** More of the same, by the name that the result has on the stage. */
  readonly overlays: Readonly<Record<string, readonly string[]>>
  /** Of the host or of the stage, into the root, which has a placeholder for each. */
  readonly binds: readonly Bind[]
  /** Whether the programs of this host are in it. Where they are not, the guest brings its own. */
  readonly hasHostPrograms: boolean
}

/** Counts up whenever the code below makes something else of the same tables. */
const RECIPE_VERSION = 3

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
  INSIDE.grants.slice(1),
  INSIDE.home.slice(1),
  INSIDE.program.slice(1),
  INSIDE.workspace.slice(1),
] as const

const LINKS = { 'var/tmp': '/tmp', 'var/run': '/run' } as const

/** What the system is, for programs that ask. It is in the host's /usr. */
const OS_RELEASE = 'usr/lib/os-release'

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
const ETC = /^(?:alternatives|fonts|ld\.so\.cache|python3.*)$/u

/** Real directories on hosts that did not merge them into /usr. */
const OUTSIDE_USR = /^(?:bin|sbin|lib(?:32|64|x32)?)$/u

/**
 * The image `host`: this host's /usr, read-only, under a root of our own. Named after what is in it, and never changed or
 * removed: sandboxes that run stand on it. A damaged file of it is written again; `onRepair` hears which.
 */
export function makeHostImage(stateDir: string, onRepair: (path: string) => void): Image {
  const binds = hostBinds()
  const release = existsSync(join('/', OS_RELEASE)) ? { 'etc/os-release': `../${OS_RELEASE}` } : {}
  const links = { ...LINKS, ...release, ...hostLinks() }
  const recipe = JSON.stringify([RECIPE_VERSION, DIRECTORIES, links, FILES, binds])
  const name = `host-${createHash('sha256').update(recipe).digest('hex').slice(0, 8)}`
  const dir = join(imagesDir(stateDir), name)
  const image = { name, root: [join(dir, 'rootfs')], overlays: {}, binds, hasHostPrograms: true }
  if (existsSync(dir)) {
    for (const path of repairRootfs(join(dir, 'rootfs'))) onRepair(path)
    return image
  }
  const fresh = `${dir}.new`
  rmSync(fresh, { recursive: true, force: true })
  makeRootfs(join(fresh, 'rootfs'), binds, links)
  syncTree(fresh)
  renameSync(fresh, dir)
  syncTree(imagesDir(stateDir), 'itself')
  return image
}

/** In place: a rename would take away what sandboxes have mounted on a file. */
function repairRootfs(rootfs: string): readonly string[] {
  const damaged = Object.entries(FILES).filter(([name, lines]) => {
    const path = join(rootfs, name)
    return !existsSync(path) || readFileSync(path, 'utf8') !== textOf(lines)
  })
  for (const [name, lines] of damaged) makeFile(join(rootfs, name), textOf(lines))
  return damaged.map(([name]) => join(rootfs, name))
}

/**
 * What lies over an imported root: our mount points as true directories, so that no link of the image leads a mount
 * elsewhere; our own files; and no library that a loader of ours would be told to load.
 */
export function makeTop(
  top: string,
  of: { readonly passwd: readonly string[]; readonly group: readonly string[] },
): void {
  for (const name of DIRECTORIES.filter((directory) => !HOST_ONLY.has(directory))) makeDirectory(join(top, name))
  chmodSync(join(top, 'tmp'), 0o1777)
  const files = {
    ...FILES,
    'etc/passwd': merge(FILES['etc/passwd'], of.passwd),
    'etc/group': merge(FILES['etc/group'], of.group),
  }
  for (const [name, lines] of Object.entries(files)) makeFile(join(top, name), textOf(lines))
  makeFile(join(top, 'etc', 'ld.so.preload'), '')
}

const HOST_ONLY: ReadonlySet<string> = new Set(['etc/ssl', 'usr', 'var'])

/** Our lines, and those of the image that claim neither the same name nor the same number. */
function merge(ours: readonly string[], theirs: readonly string[]): readonly string[] {
  const keys = new Set(ours.flatMap((line) => [line.split(':')[0], line.split(':')[2]]))
  const plain = theirs.filter((line) => /^[\w.-]{1,64}:[^:]{0,64}:\d{1,10}:[\x20-\x7E]{0,512}$/u.test(line))
  return [...ours, ...plain.filter((line) => !keys.has(line.split(':')[0]) && !keys.has(line.split(':')[2]))]
}

export function imagesDir(stateDir: string): string {
  return join(stateDir, 'images')
}

function makeRootfs(rootfs: string, binds: readonly Bind[], links: Readonly<Record<string, string>>): void {
  for (const name of DIRECTORIES) makeDirectory(join(rootfs, name))
  // A runtime may give a mount the mode of what it covers.
  chmodSync(join(rootfs, 'tmp'), 0o1777)
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(rootfs, name))
  for (const [name, lines] of Object.entries(FILES)) makeFile(join(rootfs, name), textOf(lines))
  for (const { source, destination } of binds) {
    if (lstatSync(source).isDirectory()) makeDirectory(join(rootfs, destination))
    else makeFile(join(rootfs, destination), '')
  }
}

function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('')
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
export function makeDirectory(path: string): void {
  mkdirSync(path, { recursive: true })
  chmodSync(path, 0o755)
}

export function makeFile(path: string, content: string | Buffer, mode = 0o644): void {
  writeFileSync(path, content)
  chmodSync(path, mode)
}
