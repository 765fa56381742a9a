import { type Damage, DAMAGES, type Found, type Life, type Tenant } from './damaged-home.ts'

type Lost = Readonly<Partial<Record<Tenant, Partial<Found>>>>

/** What a damaged file of a class costs, and what is said of it. */
export interface DamagedClass {
  /** By its path in the state directory. A star is any part of one name, two stars are any path; ids are of the tenant `default`. */
  readonly files: string
  /** A server may have none that holds anything. */
  readonly mayBeEmpty?: true
  /** Damages that cost nothing and are not told: the file is made anew, a log, or not read again. */
  readonly harmless?: readonly Damage[]
  /** Printed where the server does not start; else in its log. */
  readonly said?: RegExp
  /** The server does not start until the file is put back. */
  readonly keepsFromStarting?: true
  /** Warnings of `/readyz`. */
  readonly warnings?: readonly string[]
  /** What is not found as it was. */
  readonly lost?: Lost
  /** The same, where that depends on the damage. */
  readonly lostBy?: Readonly<Partial<Record<Damage, Lost>>>
  /** Chains that must be set aside by hand. */
  readonly quarantine?: string
}

const BROKEN: Partial<Found> = { files: 'evidence_broken', session: 'evidence_broken', create: 'evidence_broken' }
const ENDED: Partial<Found> = {
  files: 'sandbox_ended',
  session: 'session_expired',
  command: 'lost',
  output: 'sandbox_ended',
}
const OF_SANDBOX = 'data-plane/sandboxes/{sandbox}'
const OF_PROGRAMS = 'data-plane/programs/*'

/** Every class of files of a state directory. The table of docs/backup.md says the same. */
export const CLASSES: readonly DamagedClass[] = [
  { ...derived('airlock.lock'), mayBeEmpty: true },
  ...['logs/*', 'data-plane/probes.json', 'run/processes.json'].map(derived),
  ...['public/audit.pub', 'public/node', 'public/permit.pub'].map(derived),
  { files: 'public/clock.json', said: /public\/clock.json cannot be read .*deadlines go by the clock of the machine/ },
  ...['developer.key', 'admin.key'].map(derived),
  ...['airlock.db', 'node-id', 'permit.key', 'sandbox-token.key'].map((name) =>
    fatal(`control-plane/${name}`, new RegExp(`control-plane: \\S+/control-plane/${name} is damaged: .*backup`)),
  ),
  ...['head.pem', 'mac.key'].map((name) =>
    fatal(`recorder/keys/${name}`, new RegExp(`recorder: \\S+/recorder/keys/${name} is damaged: .*backup`)),
  ),
  {
    files: 'control-plane/unstored-kills',
    harmless: ['filled with NULs'],
    said: /unstored-kills lost its end/,
  },
  ...['default', 'acme', 'system'].flatMap((tenant) => [
    chain(tenant, `recorder/chains/${tenant}/000000000001.ndjson`),
    chain(tenant, `recorder/chains/${tenant}/head.json`),
  ]),
  ...['files.json', 'inside/bin/*', 'inside/closure/**', 'inside/guest.cjs', 'inside/probe', 'inside/kernels/*']
    .concat(['inside/wrappers/*', 'tools/**'])
    .map((name) => ({
      files: `${OF_PROGRAMS}/${name}`,
      said: /replacing damaged files that sandboxes are started from/,
    })),
  { files: 'data-plane/images/host-*/rootfs/etc/*', said: /replaced a damaged file that sandboxes stand on/ },
  {
    files: 'data-plane/vault/default/{over}',
    lost: { default: { fullOutput: 'output_not_kept' } },
    // Nothing vouches for the bytes.
    lostBy: { 'filled with NULs': { default: { fullOutput: 'damaged' } } },
  },
  {
    files: `${OF_SANDBOX}/sandbox.json`,
    said: /a sandbox ended because its files on the host are damaged/,
    lost: { default: { ...ENDED, sandbox: 'state_damaged' } },
  },
  { files: `${OF_SANDBOX}/init.pid`, lost: { default: { ...ENDED, sandbox: 'guest_lost' } } },
  {
    files: `${OF_SANDBOX}/commands/journal.ndjson`,
    said: /journal of commands was cut off|a guest runs a command that nobody asked for/,
    lost: { default: { command: 'lost', output: 'command_not_found' } },
  },
  { files: `${OF_SANDBOX}/commands/{command}.out`, lost: { default: { output: 'cut' } } },
  {
    files: `${OF_SANDBOX}/commands/{over}.out`,
    said: /a part of the output of a command is lost/,
  },
  // What is lost shows when it is read: the kernel has the rest in memory.
  derived(`${OF_SANDBOX}/disk.img`),
  ...['bundle/config.json', 'launch/*'].map((name) => derived(`${OF_SANDBOX}/${name}`)),
  ...['launch.log', 'runtime.log', 'disk-traffic'].map((name) => ({
    ...derived(`${OF_SANDBOX}/${name}`),
    mayBeEmpty: true as const,
  })),
  derived('run/runtime/{sandbox}/{sandbox}/*'),
  ...['control-plane/notes.ndjson', 'control-plane/open/notes.ndjson', 'data-plane/notes.ndjson'].map((name) =>
    derived(`run/spill/${name}`),
  ),
  // Filled by the starts before.
  derived('compiled/**'),
]

/** Whether a class has a file of that path, for this life of the tenant `default`. */
export function matches({ files }: DamagedClass, path: string, life: Life): boolean {
  const filled = files.replaceAll(
    /\{(\w+)\}/gu,
    (_, name: string) => (life as unknown as Record<string, string>)[name] ?? '',
  )
  const pattern = filled
    .split(/(\*\*|\*)/u)
    .map((part) => (part === '**' ? '.*' : part === '*' ? '[^/]*' : part.replaceAll(/[.\\+?^$()[\]|]/gu, '\\$&')))
  return new RegExp(`^${pattern.join('')}$`, 'u').test(path)
}

function derived(files: string): DamagedClass {
  return { files, harmless: DAMAGES }
}

function fatal(files: string, said: RegExp): DamagedClass {
  return { files, said, keepsFromStarting: true }
}

function chain(tenant: string, files: string): DamagedClass {
  const lost = tenant === 'default' || tenant === 'acme' ? { [tenant]: BROKEN } : {}
  const said = /the evidence of a tenant is broken: nothing is granted to it/
  return { files, said, lost, warnings: ['evidence_broken'], quarantine: tenant }
}
