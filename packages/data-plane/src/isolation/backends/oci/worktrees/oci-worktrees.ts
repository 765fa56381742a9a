import {
  AirlockError,
  type FindCommitRequest,
  nodeExport,
  type NodeExport,
  type NodeExportRequest,
  type PermitMount,
  permitMount,
  WORKTREE_NAME,
  type WorktreeBase,
  worktreeBase,
  type WorktreeDiff,
} from '@airlock/contract'
import { KeyedLock } from '@airlock/std'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { HostDisk } from '../../../host-disk.ts'
import type { Worktrees } from '../../../worktrees/worktrees.ts'
import { loopDeviceOf } from '../destroy.ts'
import { BUILDER_UID } from '../images/confined.ts'
import type { Tools } from '../images/program.ts'
import { pathsOf, type Places, STAGE } from '../paths.ts'
import { findTool } from '../run-tool.ts'
import { describe } from './describe.ts'
import { nameBytes, shownName } from './names.ts'
import { scanned, type SealManifest, sealHash, sealManifest } from './manifest.ts'
import { runProgram } from './run-program.ts'

const MIB = 1024 * 1024
/** A commit, packed. */
const MAX_PACK = 512 * MIB
const SCAN_BOUNDS = { maxFile: 64 * MIB, maxBytes: 256 * MIB, maxPatch: 64 * MIB, maxChanges: 20_000 } as const
const LOOK_MS = 15_000
const PLACE_MS = 120_000
const SCAN_MS = 120_000
/** Sealed copies of a sandbox: the latest of them. */
const MAX_SEALS = 4

type Placed = PermitMount & { readonly base: WorktreeBase }
const foundCommit = worktreeBase.extend({ dev: z.string(), ino: z.string() })

export interface OciWorktreesOptions {
  readonly places: Places
  readonly tools: Pick<Tools, 'repository' | 'placeWorktree' | 'scanWorktree'>
  readonly hostDisk: Pick<HostDisk, 'hasRoom'>
}

/** Worktrees on the disk images of sandboxes. All that is kept of one lies in the directory of its sandbox, and ends with it. */
export class OciWorktrees implements Worktrees {
  readonly #options: OciWorktreesOptions
  readonly #turns = new KeyedLock()
  readonly #ends = new Map<string, AbortController>()

  constructor(options: OciWorktreesOptions) {
    this.#options = options
  }

  async findCommit(asked: FindCommitRequest): Promise<WorktreeBase> {
    this.#assertGit()
    const request = { ...asked, stage: STAGE }
    const said = await this.#run({ program: 'repository', verb: 'look', request, timeoutMs: LOOK_MS })
    const { dev: _dev, ino: _ino, ...base } = foundCommit.parse(JSON.parse(said))
    return base
  }

  async place(id: string, worktree: PermitMount, signal: AbortSignal): Promise<void> {
    const placed = withBase(worktree)
    const dir = this.#dirOf(id)
    await this.#turns.run(id, async () => {
      const until = AbortSignal.any([signal, this.#endOf(id)])
      await mkdir(join(dir, 'seals'), { recursive: true, mode: 0o700 })
      await writeFile(join(dir, 'mount.json'), JSON.stringify(placed), { flag: 'wx', mode: 0o600 })
      await this.#takePack(placed, join(dir, 'base.pack'), until)
      const { tree, commit, format, time } = placed.base
      const request = { dir, device: this.#deviceOf(id), tree, commit, format, time, maxBytes: MAX_PACK, ...OURS }
      await this.#run({ program: 'placeWorktree', request, timeoutMs: PLACE_MS, signal: until })
      await rm(join(dir, 'base.pack'))
    })
  }

  async seal(id: string): Promise<WorktreeDiff> {
    const { hostDisk } = this.#options
    const placed = await this.#placed(id)
    if (!hostDisk.hasRoom()) throw new AirlockError('host_disk_full')
    return this.#turns.run(id, async () => {
      const fresh = join(this.#dirOf(id), `sealing-${randomBytes(8).toString('hex')}`)
      await mkdir(fresh, { mode: 0o755 })
      try {
        const manifest = await this.#scan(id, placed, fresh)
        await this.#keep(id, fresh, manifest)
        return manifest.diff
      } finally {
        await rm(fresh, { recursive: true, force: true })
      }
    })
  }

  async sealed(id: string, seal: string): Promise<WorktreeDiff> {
    await this.#placed(id)
    return (await this.#manifest(id, seal)).diff
  }

  async patch(id: string, seal: string): Promise<Buffer> {
    await this.#placed(id)
    const { patchSha256 } = await this.#manifest(id, seal)
    if (patchSha256 === null)
      throw new AirlockError('worktree_too_large', 'The patch would be larger than 64 MiB. Export a branch instead.')
    const bytes = await readFile(join(this.#dirOf(id), 'seals', seal, 'patch'))
    if (sha256(bytes) !== patchSha256) throw new AirlockError('worktree_changed')
    return bytes
  }

  async export(id: string, asked: NodeExportRequest): Promise<NodeExport> {
    const placed = await this.#placed(id)
    const { path, dev, ino, base } = placed
    return this.#turns.run(id, async () => {
      const { tree, objects, sealedAt: time } = await this.#manifest(id, asked.seal)
      const seal = join(this.#dirOf(id), 'seals', asked.seal)
      const repository = { path, dev, ino, commit: base.commit, baseTree: base.tree, format: base.format }
      const { branch, message } = asked
      const request = { ...repository, stage: STAGE, seal, tree, objects, time, branch, message }
      const run = { program: 'repository', verb: 'export', request, timeoutMs: PLACE_MS } as const
      return nodeExport.parse(JSON.parse(await this.#run({ ...run, signal: this.#endOf(id) })))
    })
  }

  /** Nothing of ours holds the disk of a sandbox when this resolves. */
  async end(id: string): Promise<void> {
    this.#ends.get(id)?.abort(new AirlockError('sandbox_ended'))
    await this.#turns.run(id, async () => void this.#ends.delete(id))
  }

  async #scan(id: string, placed: Placed, seal: string): Promise<SealManifest> {
    const request = { dir: this.#dirOf(id), device: this.#deviceOf(id), seal, ...OURS, ...SCAN_BOUNDS }
    const run = { program: 'scanWorktree', request, timeoutMs: SCAN_MS, signal: this.#endOf(id) } as const
    const found = scanned.parse(JSON.parse(await this.#run(run)))
    const hasPatch = found.patch && found.changes.length > 0
    const patch = hasPatch ? await readFile(join(seal, 'patch')) : undefined
    const patchSha256 = patch ? sha256(patch) : null
    const { changes, findings } = await describe(found, seal)
    const { commits, commitsComplete, ignored, tree } = found
    const objects = found.changes.flatMap(({ isNew, newOid, sha256: digest }): [string, string][] =>
      isNew && newOid !== null && digest !== null ? [[newOid, digest]] : [],
    )
    const leftOut = found.leftOut.map(([path, why]) => ({ path: shownName(nameBytes(path)), why }))
    const diff: WorktreeDiff = {
      seal: sealHash({ commit: placed.base.commit, source: placed.path }, found, patchSha256),
      source: placed.path,
      base: placed.base.commit,
      changes: [...changes],
      ignored,
      leftOut,
      commits,
      commitsComplete,
      findings: [...findings],
      patchBytes: hasPatch || found.changes.length === 0 ? (patch?.length ?? 0) : null,
    }
    const sealedAt = Math.floor(Date.now() / 1000)
    return { tree, sealedAt, objects: [...objects, ...found.objects], patchSha256, diff }
  }

  /** Work that was sealed before keeps its copy, with the time of that. */
  async #keep(id: string, fresh: string, manifest: SealManifest): Promise<void> {
    const seals = join(this.#dirOf(id), 'seals')
    const kept = join(seals, manifest.diff.seal)
    if (existsSync(kept)) return
    await writeFile(join(fresh, 'manifest.json'), JSON.stringify(manifest), { flag: 'wx', mode: 0o600 })
    await rename(fresh, kept)
    const all = await Promise.all(
      (await readdir(seals)).map(async (name) => ({ name, at: (await stat(join(seals, name))).ctimeMs })),
    )
    const old = all.toSorted((a, b) => b.at - a.at).slice(MAX_SEALS)
    for (const { name } of old) await rm(join(seals, name), { recursive: true, force: true })
  }

  async #manifest(id: string, seal: string): Promise<SealManifest> {
    try {
      return sealManifest.parse(
        JSON.parse(await readFile(join(this.#dirOf(id), 'seals', seal, 'manifest.json'), 'utf8')),
      )
    } catch (cause) {
      throw new AirlockError('worktree_changed', 'There is no such sealed copy any more.', { cause })
    }
  }

  async #takePack(placed: Placed, path: string, signal: AbortSignal): Promise<void> {
    const { tree, format } = placed.base
    const request = {
      path: placed.path,
      dev: placed.dev,
      ino: placed.ino,
      stage: STAGE,
      tree,
      format,
      maxBytes: MAX_PACK,
    }
    const file = await open(path, 'wx', 0o600)
    try {
      await this.#run({ program: 'repository', verb: 'pack', request, into: file.fd, timeoutMs: PLACE_MS, signal })
    } finally {
      await file.close()
    }
  }

  async #placed(id: string): Promise<Placed> {
    const path = join(this.#dirOf(id), 'mount.json')
    if (!existsSync(path)) throw new AirlockError('worktree_not_found')
    return withBase(permitMount.parse(JSON.parse(await readFile(path, 'utf8'))))
  }

  #endOf(id: string): AbortSignal {
    const known = this.#ends.get(id) ?? new AbortController()
    this.#ends.set(id, known)
    return known.signal
  }

  #deviceOf(id: string): string {
    const device = loopDeviceOf(pathsOf(this.#options.places, id).disk)
    if (device === undefined)
      throw new AirlockError('sandbox_ended', 'The disk of the sandbox is not mounted any more.')
    return device
  }

  #dirOf(id: string): string {
    return join(pathsOf(this.#options.places, id).dir, 'worktree')
  }

  #assertGit(): void {
    if (findTool('git') === undefined)
      throw new AirlockError('isolation_unavailable', 'The program "git" is missing on the host.', {
        hint: 'apt-get install git',
      })
  }

  async #run(run: {
    readonly program: keyof OciWorktreesOptions['tools']
    readonly verb?: string
    readonly request: unknown
    readonly into?: number
    readonly timeoutMs: number
    readonly signal?: AbortSignal
  }): Promise<string> {
    const { program, signal = AbortSignal.timeout(run.timeoutMs), ...rest } = run
    return runProgram({ ...rest, program: this.#options.tools[program], signal })
  }
}

const OURS = { stage: STAGE, builder: BUILDER_UID, name: WORKTREE_NAME } as const

function withBase(worktree: PermitMount): Placed {
  if (worktree.base === undefined)
    throw new AirlockError('permit_rejected', 'The permit has a worktree without a base.')
  return { ...worktree, base: worktree.base }
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
