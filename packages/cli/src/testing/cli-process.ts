import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { COMPILED } from '../../../../test/support/compiled.ts'

export const CLI = fileURLToPath(new URL('../../bin/airlock.js', import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** For tests only: the CLI as a process of its own, with exactly this environment, and what Node compiled before. */
export class CliProcess {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>
  readonly ended: Promise<Ended>
  stdout = Buffer.alloc(0)
  stderr = Buffer.alloc(0)

  constructor(
    argv: readonly string[],
    options: { readonly env: NodeJS.ProcessEnv; readonly command?: readonly string[]; readonly cwd?: string },
  ) {
    const [file = '', ...before] = options.command ?? [process.execPath, CLI]
    const { env, cwd } = options
    this.child = spawn(file, [...before, ...argv], {
      env: { ...COMPILED, ...env },
      cwd,
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    this.child.stdout.on('data', (bytes: Buffer) => (this.stdout = Buffer.concat([this.stdout, bytes])))
    this.child.stderr.on('data', (bytes: Buffer) => (this.stderr = Buffer.concat([this.stderr, bytes])))
    this.ended = once(this.child, 'close').then(([code]: (number | null)[]) => ({
      code: code ?? null,
      stdout: this.stdout.toString('utf8'),
      stderr: this.stderr.toString('utf8'),
    }))
  }
}
