import type { Failpoint } from '@airlock/contract'
import { createLog } from '@airlock/std'
import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe } from 'vitest'
import { requires } from '../../../../../../test/support/requires.ts'
import { describeBackend, type BackendHost } from '../../conformance.ts'
import { loopDeviceOf } from './destroy.ts'
import { createOciBackend } from './oci-backend.ts'
import { startTimeOf } from './processes.ts'

const GUEST = fileURLToPath(new URL('../../fixtures/probe-guest.cjs', import.meta.url))

for (const runtime of ['crun', 'runc'] as const)
  describe(`with ${runtime} on this host`, requires(runtime), () => {
    describeBackend(`oci (${runtime})`, () => makeHost({ runtime, tier: 'standard' }))
  })

describe('with runsc on this host', requires('crun', 'runsc'), () => {
  describeBackend('oci (runsc)', () => makeHost({ runtime: 'auto', tier: 'strict' }))
})

function makeHost({ runtime, tier }: { readonly runtime: string; readonly tier: BackendHost['tier'] }): BackendHost {
  const root = mkdtempSync(join(tmpdir(), 'airlock oci-'))
  const [stateDir, runtimeDir] = [join(root, 'state'), join(root, 'run')]
  const log = createLog({ process: 'test', level: 'error', write: (line) => process.stderr.write(line) })
  const options = {
    stateDir,
    runtimeDir,
    runtime,
    guestBundle: GUEST,
    node: process.execPath,
    log,
    failpoint: async () => {},
    runsc: process.env['AIRLOCK_RUNSC'] ?? 'auto',
  }
  return {
    runtimeDir,
    tier,
    make: async (failpoint: Failpoint = async () => {}) => await createOciBackend({ ...options, failpoint }),
    makeStandardOnly: async () => await createOciBackend({ ...options, runsc: 'none' }),
    leftovers: (id) => leftovers({ id, stateDir, runtimeDir }),
    close: () => rmSync(root, { recursive: true, force: true }),
  }
}

/** Looks at the kernel and the disk, not at what the backend says. */
function leftovers(at: { id: string; stateDir: string; runtimeDir: string }): readonly string[] {
  const dir = join(at.stateDir, 'sandboxes', at.id)
  const claims = '/run/airlock-uid-ranges'
  return [
    ...[dir, join(at.runtimeDir, 'runtime', at.id)].filter((path) => existsSync(path)),
    ...processesOf(at.id),
    ...groupsOf(at.id),
    ...[loopDeviceOf(join(dir, 'disk.img'))].filter((device) => device !== undefined),
    ...readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .filter((line) => line.includes(at.id)),
    ...readdirSync(claims).filter((slot) => readlinkSync(join(claims, slot)) === dir),
  ]
}

function processesOf(id: string): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/u.test(name))
    .filter((pid) => {
      try {
        // A zombie has ended; whoever inherited it will reap it.
        return readFileSync(`/proc/${pid}/cgroup`, 'utf8').includes(id) && startTimeOf(Number(pid)) !== undefined
      } catch {
        // It ended while we looked.
        return false
      }
    })
    .map((pid) => `process ${pid}`)
}

function groupsOf(id: string): readonly string[] {
  const mounts = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '))
  return mounts
    .filter(([, , type]) => type === 'cgroup' || type === 'cgroup2')
    .flatMap(([, at = '']) =>
      readdirSync(at)
        .filter((name) => name.startsWith('airlock-'))
        .map((name) => join(at, name, id)),
    )
    .filter((path) => existsSync(path))
}
