import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { Image } from './image.ts'
import { parseReport, type Report } from './report.ts'

export type Accelerator = 'kvm' | 'tcg'

export interface Machine {
  readonly image: Image
  readonly accelerator: Accelerator
  /** The second disk. */
  readonly tree: string
  /** Where the console is kept. */
  readonly directory: string
}

/** It ends with us, however we end. */
const QEMU = 'setpriv --pdeathsig KILL qemu-system-x86_64'.split(' ')
const ACCELERATORS: Readonly<Record<Accelerator, readonly string[]>> = {
  kvm: ['-accel', 'kvm', '-cpu', 'host'],
  tcg: ['-accel', 'tcg,thread=multi,tb-size=1024', '-cpu', 'max'],
}
const COMMON = '-nodefaults -no-reboot -display none -monitor none'.split(' ')
const KVM_TRIAL_MS = 20_000
/** Emulated and on a busy machine, a boot takes up to two minutes. */
const BOOT_MS = 6 * 60_000
/** It says every few seconds that it lives. */
const SILENCE_MS = 3 * 60_000
const WHOLE_MS = 40 * 60_000
const CONSOLE_CHARS = 4_000

/** That `/dev/kvm` is there proves nothing: a kernel must come up with it, as far as missing its root. */
export async function findAccelerator({ kernel }: Image): Promise<Accelerator> {
  if (!existsSync('/dev/kvm')) return 'tcg'
  const append = ['-kernel', kernel, '-append', 'console=ttyS0 panic=-1']
  const child = start([...ACCELERATORS.kvm, ...COMMON, '-m', '512', '-serial', 'stdio', ...append])
  child.on('error', () => {
    // It has no exit either: the trial ends by its time.
  })
  const lines = createInterface({ input: child.stdout })
  const booted = new Promise<Accelerator>((resolve) =>
    lines.on('line', (line) => {
      if (line.includes('Unable to mount root fs')) resolve('kvm')
    }),
  )
  const ended = new Promise<Accelerator>((resolve) => child.once('exit', () => resolve('tcg')))
  const found = await Promise.race([booted, ended, delay(KVM_TRIAL_MS, 'tcg' as const)])
  child.kill('SIGKILL')
  return found
}

/** Runs the machine until it powers itself off. Throws when it does not boot, falls silent, or ends before its end. */
export async function runMachine(machine: Machine, onReport: (report: Report) => void): Promise<void> {
  const child = start(argumentsFor(machine))
  const said = collect(child.stderr)
  let ended = false
  let why = 'ended by itself'
  const giveUp = (reason: string) => {
    why = reason
    child.kill('SIGKILL')
  }
  const whole = setTimeout(() => giveUp(`took more than ${WHOLE_MS / 60_000} minutes`), WHOLE_MS)
  let silence = setTimeout(() => giveUp('did not boot in time'), BOOT_MS)
  createInterface({ input: child.stdout }).on('line', (line) => {
    const report = parseReport(line.trim())
    if (!report) return
    clearTimeout(silence)
    silence = setTimeout(() => giveUp('fell silent'), SILENCE_MS)
    if (report.kind === 'end') ended = true
    onReport(report)
  })
  await new Promise<void>((resolve) => {
    child.once('error', () => resolve())
    child.once('close', () => resolve())
  })
  clearTimeout(whole)
  clearTimeout(silence)
  if (!ended) throw new TypeError(`the machine ${why}\n${said()}\n${consoleTail(machine)}`)
}

function start(args: readonly string[]): ChildProcessByStdio<null, Readable, Readable> {
  const [program = '', ...before] = QEMU
  return spawn(program, [...before, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
}

function argumentsFor({ image, accelerator, tree, directory }: Machine): readonly string[] {
  const disk = (path: string) => ['-drive', `file=${path},format=raw,if=virtio,snapshot=on`]
  const settings = `console=ttyS0 root=/dev/vda rw quiet panic=-1 airlock.accelerator=${accelerator}`
  return [
    ...ACCELERATORS[accelerator],
    ...COMMON,
    ...'-smp 2 -m 3072 -device virtio-rng-pci'.split(' '),
    '-kernel',
    image.kernel,
    '-initrd',
    image.initrd,
    '-append',
    settings,
    ...disk(image.root),
    ...disk(tree),
    // ttyS0 is the console, ttyS1 brings the reports.
    '-serial',
    `file:${consolePath(directory)}`,
    '-serial',
    'stdio',
  ]
}

function consolePath(directory: string): string {
  return join(directory, 'console.log')
}

function consoleTail({ directory }: Machine): string {
  const path = consolePath(directory)
  return existsSync(path) ? readFileSync(path, 'utf8').slice(-CONSOLE_CHARS) : ''
}

function collect(stream: NodeJS.ReadableStream): () => string {
  let text = ''
  stream.on('data', (chunk: Buffer) => (text = (text + chunk.toString()).slice(-CONSOLE_CHARS)))
  return () => text
}
