import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Places } from '../paths.ts'

/** What is never granted, whatever a permit says. */
export interface Sensitive {
  /** Neither these, nor anything in them, nor what they are in. */
  readonly closed: readonly string[]
  /** Not as a whole, nor what they are in; a directory in them may be granted. */
  readonly homes: readonly string[]
  /** Names of secrets, wherever they are, and directories that have them. */
  readonly secrets: readonly string[]
  /** Names of secrets that are looked for below what is granted: not seen when it is read-only, and refused otherwise. */
  readonly buried: readonly string[]
}

const SYSTEM = [
  '/boot',
  '/dev',
  '/etc',
  '/proc',
  '/root',
  '/run',
  '/sys',
  '/var/backups',
  '/var/cache/debconf',
  '/var/run',
  '/var/spool/cron',
] as const

/** Sandboxes and containers of this host: their files, and the sockets that rule over them. */
const RUNTIMES = [
  '/var/lib/airlock',
  '/var/lib/containerd',
  '/var/lib/containers',
  '/var/lib/docker',
  '/var/lib/kubelet',
  '/var/lib/lxc',
  '/var/lib/lxd',
  '/var/snap',
] as const

const SECRETS = [
  '.aws',
  '.azure',
  '.bash_history',
  '.config/gcloud',
  '.config/gh',
  '.config/op',
  '.docker',
  '.git-credentials',
  '.gnupg',
  '.kube',
  '.local/share/containers',
  '.local/share/keyrings',
  '.mozilla',
  '.netrc',
  '.npmrc',
  '.password-store',
  '.pgpass',
  '.pypirc',
  '.ssh',
  '.vault-token',
  '.airlock',
] as const

/**
 * What is a secret wherever it lies. Not what a project has for good reasons, such as `.npmrc` or `.env`: who does not want
 * those seen blocks them by a pattern.
 */
const BURIED = [
  '.aws',
  '.azure',
  '.git-credentials',
  '.gnupg',
  '.kube',
  '.netrc',
  '.password-store',
  '.pgpass',
  '.ssh',
  '.vault-token',
  'id_dsa',
  'id_ecdsa',
  'id_ed25519',
  'id_rsa',
] as const

/** Users, not services: those have their homes in places that are granted for good reasons. */
const FIRST_USER = 1000
const NOBODY = 65_534

/** Our own program too: root runs it, so nobody else may write it. */
const PROGRAM = fileURLToPath(new URL('../../../../../../../', import.meta.url)).replace(/\/$/u, '')

export function findSensitive(places: Places): Sensitive {
  const own = [dirname(places.stateDir), places.stateDir, places.runtimeDir, PROGRAM]
  return { closed: [...SYSTEM, ...RUNTIMES, ...own], homes: findHomes(), secrets: SECRETS, buried: BURIED }
}

function findHomes(): readonly string[] {
  const inHome = existsSync('/home') ? readdirSync('/home').map((name) => `/home/${name}`) : []
  const ofUsers = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .filter(([, , uid]) => Number(uid) >= FIRST_USER && Number(uid) !== NOBODY)
    .flatMap(([, , , , , home]) => (home?.startsWith('/') ? [home] : []))
  return [...new Set(['/home', ...inHome, ...ofUsers])]
}
