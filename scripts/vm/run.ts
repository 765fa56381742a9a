import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureImage } from './image.ts'
import { findAccelerator, runMachine, type Accelerator, type Machine } from './qemu.ts'
import type { StepReport } from './report.ts'
import { makeTreeDisk } from './tree.ts'

/** What came of one run of the machine. */
export interface VmRun {
  readonly accelerator: Accelerator
  readonly bootSeconds: number
  readonly steps: ReadonlyMap<string, Step>
}

export interface Step extends StepReport {
  readonly output: string
}

/** Whoever waited longer for nothing does not wait once more. */
const RETRY_WITHIN_MS = 15 * 60_000
const OUTPUT_CHARS = 400_000

/**
 * Boots a Debian with systemd and version 2 of control groups alone, gives it this repository on a disk, and lets it run
 * `inside/main.ts`. A machine that hangs is tried once more: an emulated one does at times.
 */
export async function runInVm(note: (text: string) => void): Promise<VmRun> {
  const image = await ensureImage(note)
  const accelerator = await findAccelerator(image)
  note(`booting with ${accelerator === 'kvm' ? 'KVM' : 'TCG, for KVM does not boot here'}`)
  const directory = mkdtempSync(join(tmpdir(), 'airlock-vm-'))
  try {
    const tree = join(directory, 'tree.img')
    await makeTreeDisk(directory, tree)
    const machine = { image, accelerator, tree, directory }
    const since = Date.now()
    return await watch(machine, note).catch(async (error: unknown) => {
      if (Date.now() - since > RETRY_WITHIN_MS) throw error
      note(`${error instanceof Error ? error.message : String(error)}\ntrying once more`)
      return watch(machine, note)
    })
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

async function watch(machine: Machine, note: (text: string) => void): Promise<VmRun> {
  const since = Date.now()
  let bootSeconds: number | undefined
  const steps = new Map<string, Step>()
  const output = new Map<string, string>()
  await runMachine(machine, (report) => {
    if (bootSeconds === undefined) {
      bootSeconds = Math.round((Date.now() - since) / 1000)
      note(`booted in ${bootSeconds} s`)
    }
    if (report.kind === 'line')
      output.set(report.step, `${output.get(report.step) ?? ''}${report.text}\n`.slice(-OUTPUT_CHARS))
    if (report.kind === 'again') {
      output.delete(report.step)
      note(`${report.step}: V8 was aborted, once more`)
    }
    if (report.kind !== 'step') return
    steps.set(report.step, { ...report, output: output.get(report.step) ?? '' })
    note(describeStep(report))
  })
  return { accelerator: machine.accelerator, bootSeconds: bootSeconds ?? 0, steps }
}

function describeStep({ step, exitCode, seconds, tests }: StepReport): string {
  const counts = tests === null ? '' : `: ${tests.passed} passed, ${tests.failed} failed, ${tests.skipped} skipped`
  return `${step}${counts} (${exitCode === null ? 'took too long' : `exit code ${exitCode}`}, ${seconds} s)`
}
