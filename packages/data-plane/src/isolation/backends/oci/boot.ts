import { INSIDE, type GuestBoot, type GuestGroups, type GuestPrograms } from '@airlock/contract/guest'
import { existsSync } from 'node:fs'
import { USER } from './bundle.ts'

/** Nothing of the caller's is in it: arguments of a process can be read by everybody on the host. */
export function makeBoot(
  groups: GuestGroups | undefined,
  programs: GuestPrograms | undefined,
  { cpus }: { readonly cpus: number },
): GuestBoot {
  const local = `${INSIDE.home}/.local`
  const own = [INSIDE.wrappers, `${local}/bin`]
  const env = {
    PATH: (programs ? [...own, SYSTEM_PATH, INSIDE.fallback] : [INSIDE.python, ...own, SYSTEM_PATH, OUR_NODE]).join(
      ':',
    ),
    HOME: INSIDE.home,
    USER: 'user',
    LOGNAME: 'user',
    SHELL: !programs && existsSync('/bin/bash') ? '/bin/bash' : '/bin/sh',
    LANG: 'C.UTF-8',
    TMPDIR: '/tmp',
    ...installEnv(local),
    ...Object.fromEntries(THREADS.map((name) => [name, String(Math.ceil(cpus))])),
  }
  const { controlSocket: socket, kernels, steps } = INSIDE
  return { socket, user: USER, env, kernels, steps, ...(groups ? { groups } : {}), ...(programs ? { programs } : {}) }
}

/**
 * How many threads are worth starting, for what asks the scheduler instead of /proc: OpenMP with numpy and `nproc`, Go, Rust's
 * rayon, Python from 3.13 on. The processors of a sandbox are a share of all of the host's.
 */
export const THREADS = ['OMP_NUM_THREADS', 'GOMAXPROCS', 'RAYON_NUM_THREADS', 'PYTHON_CPU_COUNT']

/** It runs by itself only where the libraries of the host are. */
const OUR_NODE = `${INSIDE.program}/bin`
const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/**
 * What users install goes to their home: pip does so by itself where it cannot write (and PIP_USER would break virtual
 * environments), npm has to be told. Nobody is there to answer questions, and without a network no try is worth another.
 */
function installEnv(prefix: string): Readonly<Record<string, string>> {
  return {
    PYTHONUSERBASE: prefix,
    PIP_BREAK_SYSTEM_PACKAGES: '1',
    PIP_NO_INPUT: '1',
    PIP_DISABLE_PIP_VERSION_CHECK: '1',
    PIP_RETRIES: '0',
    NPM_CONFIG_PREFIX: prefix,
    NPM_CONFIG_UPDATE_NOTIFIER: 'false',
    NPM_CONFIG_FETCH_RETRIES: '0',
    NPM_CONFIG_AUDIT: 'false',
    NPM_CONFIG_FUND: 'false',
  }
}
