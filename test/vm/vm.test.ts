import { beforeAll, describe, expect, it } from 'vitest'
import { runInVm, type Step, type VmRun } from '../../scripts/vm/run.ts'
import { requires } from '../support/requires.ts'

/** A new image, and two runs of the machine: a bound against hanging, not a measure. */
const LIMIT_MS = 70 * 60_000
const OUTPUT_CHARS = 20_000

let vm: VmRun

/** What `npm run test:long -- vm` runs: the same product on the kind of host that most users have. */
describe(
  'on a Debian with systemd and version 2 of control groups alone',
  requires('root', 'qemu-system-x86_64', 'debootstrap'),
  () => {
    beforeAll(async () => {
      vm = await runInVm((text) => process.stderr.write(`vm: ${text}\n`))
    }, LIMIT_MS)

    it('is such a machine', () => {
      expect(ended('machine').output).toMatch(/^cgroup2 .*nsdelegate/mu)
      expect(ended('machine').output).toMatch(/^(?=.*\bcpu\b)(?=.*\bmemory\b)(?=.*\bpids\b)[a-z_ ]+$/mu)
    })

    it('finds everything that a sandbox needs', () => {
      expect(checks('doctor')).toMatchObject({ cgroups: 'found', sandbox: 'found', crun: 'found' })
    })

    it('makes sandboxes in a control group of its own, as in a container', () => {
      expect(checks('doctor in a group')).toMatchObject({ cgroups: 'found', sandbox: 'found' })
    })

    it('passes what it runs of our tests: the kill -9 cases too, unless it is emulated', () => {
      const names = ['conformance', 'service', 'walk', ...(vm.accelerator === 'kvm' ? ['kill -9'] : [])]
      for (const name of names) {
        const { tests, output } = ended(name)
        expect(tests?.passed, output.slice(-OUTPUT_CHARS)).toBeGreaterThan(0)
        expect(tests?.failed, output.slice(-OUTPUT_CHARS)).toBe(0)
      }
    })
  },
)

function ended(name: string): Step {
  const step = vm.steps.get(name)
  if (!step) throw new TypeError(`the machine did not run ${name}`)
  expect(step.exitCode, step.output.slice(-OUTPUT_CHARS)).toBe(0)
  return step
}

/** Names of the checks and what came of each. */
function checks(name: string): Readonly<Record<string, string>> {
  const { checks: all } = JSON.parse(ended(name).output) as {
    readonly checks: readonly { readonly name: string; readonly status: string }[]
  }
  return Object.fromEntries(all.map((check) => [check.name, check.status]))
}
