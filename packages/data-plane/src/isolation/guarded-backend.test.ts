import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AirlockError } from '@airlock/contract'
import { createLog, newId } from '@airlock/std'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { SandboxSpec, StartedSandbox } from './backend.ts'
import { type BareBackend, StartGuard } from './guarded-backend.ts'

/** Sandboxes that are directories, and starts that take as long as a test wants. */
class Directories implements Pick<BareBackend, 'holds' | 'start' | 'stop' | 'reap'> {
  readonly #root: string
  made = Promise.withResolvers<void>()
  /** Called once the directory is there. */
  afterwards: (signal: AbortSignal) => Promise<void> = async () => {}
  stubborn = false

  constructor(root: string) {
    this.#root = root
  }

  get ids(): readonly string[] {
    return readdirSync(this.#root)
  }

  async holds(id: string): Promise<boolean> {
    return existsSync(join(this.#root, id))
  }

  async start({ id }: SandboxSpec, signal: AbortSignal): Promise<StartedSandbox> {
    mkdirSync(join(this.#root, id))
    this.made.resolve()
    await this.afterwards(signal)
    return { id, image: 'none' } as StartedSandbox
  }

  async stop(id: string): Promise<void> {
    if (this.stubborn) throw new AirlockError('internal', 'would not die')
    rmSync(join(this.#root, id), { recursive: true, force: true })
  }

  async reap(keep: ReadonlySet<string>): Promise<readonly string[]> {
    const orphans = this.ids.filter((id) => !keep.has(id))
    for (const id of orphans) await this.stop(id)
    return orphans
  }
}

describe('a guarded backend', () => {
  let root: string
  let bare: Directories
  let guard: StartGuard
  const lines: string[] = []
  const never = new AbortController().signal
  const spec = (id = newId('sbx')) => ({ id }) as SandboxSpec
  const untilAborted = async (signal: AbortSignal) =>
    new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'airlock-guard-'))
    bare = new Directories(root)
    guard = new StartGuard(bare, createLog({ process: 'test', level: 'warn', write: (line) => void lines.push(line) }))
  })
  afterEach(() => {
    rmSync(root, { recursive: true })
    lines.length = 0
  })

  it('refuses to start what was started before, and leaves that alone', async () => {
    const one = spec()
    await guard.start(one, never)
    await expect(guard.start(one, never)).rejects.toMatchObject({ code: 'internal' })
    expect(bare.ids).toEqual([one.id])
  })

  it('refuses to start what is being started, which goes on', async () => {
    const release = Promise.withResolvers<void>()
    bare.afterwards = async () => release.promise
    const one = spec()
    const first = guard.start(one, never)
    await expect(guard.start(one, never)).rejects.toMatchObject({ code: 'internal' })
    release.resolve()
    expect(await first).toMatchObject({ id: one.id })
  })

  it('leaves nothing of a start that fails, and names the failure', async () => {
    bare.afterwards = async () => Promise.reject(new TypeError('broken'))
    await expect(guard.start(spec(), never)).rejects.toMatchObject({
      code: 'start_failed',
      cause: new TypeError('broken'),
    })
    expect(bare.ids).toEqual([])
    bare.afterwards = async () => Promise.reject(new AirlockError('grant_refused'))
    await expect(guard.start(spec(), never)).rejects.toMatchObject({ code: 'grant_refused' })
    expect(bare.ids).toEqual([])
  })

  it('says the first failure and logs the second where a failed start cannot be undone', async () => {
    bare.stubborn = true
    bare.afterwards = async () => Promise.reject(new AirlockError('grant_refused'))
    await expect(guard.start(spec(), never)).rejects.toMatchObject({ code: 'grant_refused' })
    expect(lines.join('')).toContain('a failed start left something behind')
  })

  it('breaks a start off for a stop, and has nothing left when that resolves', async () => {
    bare.afterwards = untilAborted
    const one = spec()
    const start = guard.start(one, never)
    const refused = expect(start).rejects.toMatchObject({ code: 'sandbox_ended' })
    await bare.made.promise
    await guard.stop(one.id)
    await refused
    expect(bare.ids).toEqual([])
  })

  it('destroys what came up after its caller had given up', async () => {
    const release = Promise.withResolvers<void>()
    bare.afterwards = async () => release.promise
    const gaveUp = new AbortController()
    const start = guard.start(spec(), gaveUp.signal)
    await bare.made.promise
    gaveUp.abort(new AirlockError('timeout'))
    release.resolve()
    await expect(start).rejects.toMatchObject({ code: 'timeout' })
    expect(bare.ids).toEqual([])
  })

  it('reaps what nobody keeps, and not what is being started', async () => {
    await guard.start(spec('sbx_kept'), never)
    await guard.start(spec('sbx_orphan'), never)
    const release = Promise.withResolvers<void>()
    bare.afterwards = async () => release.promise
    bare.made = Promise.withResolvers<void>()
    const start = guard.start(spec('sbx_starting'), never)
    await bare.made.promise
    expect(await guard.reap(new Set(['sbx_kept']))).toEqual(['sbx_orphan'])
    release.resolve()
    await start
    expect(bare.ids).toEqual(['sbx_kept', 'sbx_starting'])
  })
})
