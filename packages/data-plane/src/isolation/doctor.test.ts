import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { findTool } from './backends/oci/run-tool.ts'
import { runChecks } from './doctor.ts'

const GUEST = fileURLToPath(import.meta.resolve('@airlock/guest/bundle'))
const NAMES = [
  'kernel',
  'capabilities',
  'namespaces',
  'uid ranges',
  'cgroups',
  'seccomp',
  'id-mapped mounts',
  'overlay',
  'loop images',
].concat(['crun', 'runc', 'runsc', 'python', 'node', 'strict sandbox', 'sandbox'])

describe('runChecks', () => {
  afterEach(() => void vi.unstubAllEnvs())

  it('says that the guest is not built, and what to do', async () => {
    const checks = await runChecks({ runtime: 'auto', node: process.execPath, guestBundle: '/nonexistent' })
    expect(checks.map(({ name }) => name)).toEqual(NAMES)
    expect(checks.at(-1)).toEqual({
      name: 'sandbox',
      status: 'missing',
      detail: 'the guest is not built',
      todo: 'npm run build',
    })
  })

  it.skipIf(!existsSync(GUEST))('names the runtime that is not there', async () => {
    const checks = await runChecks({ runtime: '/nonexistent/crun', node: process.execPath, guestBundle: GUEST })
    expect(checks.at(-1)).toEqual({
      name: 'sandbox',
      status: 'missing',
      detail: 'The OCI runtime "/nonexistent/crun" was not found or is not supported.',
      todo: 'apt-get install crun',
    })
  })

  it.skipIf(!existsSync(GUEST) || !(findTool('crun') ?? findTool('runc')))(
    'starts a whole sandbox and leaves nothing behind',
    async () => {
      const scratch = mkdtempSync(join(tmpdir(), 'airlock-doctor-test-'))
      onTestFinished(() => rmSync(scratch, { recursive: true }))
      vi.stubEnv('TMPDIR', scratch)
      const checks = await runChecks({ runtime: 'auto', node: process.execPath, guestBundle: GUEST })
      expect(checks.filter(({ status }) => status === 'missing')).toEqual([])
      expect(checks.at(-1)).toEqual({
        name: 'sandbox',
        status: 'found',
        detail: expect.stringMatching(/^started with \S+ \S+ in \d+ ms, \d+ forbidden system calls fail, ended$/u),
      })
      const strict = checks.find(({ name }) => name === 'strict sandbox')
      // The one of Debian 12 does not know what its coreutils ask for.
      const isOld = strict?.detail.includes('0.0~20221219') === true
      if (findTool('runsc') !== undefined)
        expect(strict).toMatchObject({
          status: isOld ? 'limited' : 'found',
          detail: expect.stringMatching(isOld ? /stat fails in it, and so does ls/u : /system calls fail, ended$/u),
        })
      const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
      expect({ left: readdirSync(scratch), mounted: mounts.includes(scratch) }).toEqual({ left: [], mounted: false })
    },
  )
})
