import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ColdTimes, type Contender, ECHO, type Place, throwOnWrong } from './contender.ts'
import { findProgram, runProgram, startDetached } from './program.ts'

const UNIFIED_BESIDE_V1 = '/sys/fs/cgroup/unified'

export interface OciPlan {
  readonly name: 'crun' | 'runsc'
  readonly rootfs: string
  readonly scratch: string
}

/** A runtime by itself with the smallest bundle that works: no uid range, no limits, no seccomp, no disk, no audit. */
export async function ociRuntime(plan: OciPlan): Promise<Contender | string> {
  const path = findProgram(plan.name)
  if (path === undefined) return 'it is not installed'
  const version = /version (\S+)/u.exec(await runProgram(path, ['--version']))?.[1] ?? 'unknown'
  const view = plan.name === 'crun' && existsSync(UNIFIED_BESIDE_V1) ? await hideUnified() : undefined
  const runtime = new OciRuntime(plan, [...(view?.enter ?? []), path, ...globalOptions(plan)])
  try {
    await runtime.cold()
  } catch (error) {
    view?.close()
    return error instanceof Error ? error.message : String(error)
  }
  return {
    name: plan.name,
    about: `${version}, \`run\` with a minimal bundle`,
    cold: async () => runtime.cold(),
    open: async () => runtime.open(),
    close: async () => view?.close(),
  }
}

class OciRuntime {
  readonly #plan: OciPlan
  readonly #command: readonly string[]
  #count = 0

  constructor(plan: OciPlan, command: readonly string[]) {
    this.#plan = plan
    this.#command = command
  }

  /** One `run` that makes the container, runs the program as its only one, and removes it. */
  async cold(): Promise<ColdTimes> {
    const { id, bundle } = this.#bundle(ECHO.argv)
    const before = performance.now()
    throwOnWrong(await this.#run(['run', `--bundle=${bundle}`, id]), this.#plan.name)
    const totalMs = performance.now() - before
    return { resultMs: totalMs, totalMs }
  }

  async open(): Promise<Place> {
    const { id, bundle } = this.#bundle(['/bin/sleep', '1000'])
    const pidFile = join(bundle, 'pid')
    const [file = '', ...args] = this.#command
    await startDetached(file, [...args, 'run', '--detach', `--bundle=${bundle}`, `--pid-file=${pidFile}`, id])
    return {
      run: async () => throwOnWrong(await this.#run(['exec', id, ...ECHO.argv]), this.#plan.name),
      pids: async () => [Number(readFileSync(pidFile, 'utf8'))],
      close: async () => void (await this.#run(['delete', '--force', id])),
    }
  }

  async #run(args: readonly string[]): Promise<string> {
    const [file = '', ...before] = this.#command
    return runProgram(file, [...before, ...args])
  }

  #bundle(argv: readonly string[]): { id: string; bundle: string } {
    const id = `bench-${this.#plan.name}-${process.pid}-${this.#count++}`
    const bundle = join(this.#plan.scratch, id)
    mkdirSync(bundle)
    symlinkSync(this.#plan.rootfs, join(bundle, 'rootfs'))
    writeFileSync(join(bundle, 'config.json'), JSON.stringify(bundleOf(argv, this.#plan.rootfs)))
    return { id, bundle }
  }
}

function globalOptions({ name, scratch }: OciPlan): readonly string[] {
  const root = `--root=${join(scratch, `${name}-state`)}`
  return name === 'crun' ? [root, '--cgroup-manager=disabled'] : [root, '--network=none', '--ignore-cgroups']
}

function bundleOf(argv: readonly string[], rootfs: string): object {
  return {
    ociVersion: '1.0.2',
    root: { path: rootfs, readonly: true },
    process: { user: { uid: 0, gid: 0 }, args: argv, env: ['PATH=/bin'], cwd: '/', noNewPrivileges: true },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755', 'size=65536k'] },
    ],
    linux: { namespaces: ['pid', 'network', 'ipc', 'uts', 'mount'].map((type) => ({ type })) },
  }
}

/** crun refuses hybrid hosts unless the empty version 2 tree is out of its sight: a mount namespace without it. */
async function hideUnified(): Promise<{ enter: readonly string[]; close(): void }> {
  const script = `mount -t tmpfs tmpfs ${UNIFIED_BESIDE_V1} && echo ready && exec sleep infinity`
  const options = ['--mount', '--propagation', 'private', '/bin/sh', '-c', script]
  const holder: ChildProcess = spawn('unshare', options, { stdio: ['ignore', 'pipe', 'ignore'] })
  if (holder.stdout) await once(holder.stdout, 'data')
  return { enter: ['nsenter', `--mount=/proc/${holder.pid}/ns/mnt`], close: () => void holder.kill('SIGKILL') }
}
