import {
  AirlockError,
  type ImageReferences,
  type ImportedImage,
  type NodeImage,
  type NodeImageEvent,
  type NodeImages,
  toAirlockError,
} from '@airlock/contract'
import { KeyedLock, LatestFeed, type Log, randomText } from '@airlock/std'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { HostDisk } from '../../../host-disk.ts'
import type { Images } from '../../../images.ts'
import { STAGED, stagedOverlay } from '../paths.ts'
import { buildPackages, isFresh } from './build-packages.ts'
import { imagesDir, makeDirectory, makeHostImage, type Image } from './image.ts'
import { importImage } from './import-image.ts'
import { InstalledPackages } from './installed.ts'
import { readManifest, writeManifest, type Manifest } from './manifest.ts'
import type { Tools } from './program.ts'

/** Builds whose failure is remembered. */
const FAILURES = 64
/** Imports at a time: each may fill as much of the disk as an image may have. */
const IMPORTS = 4
/** Whoever made an image has this long to refer to it. */
const YOUNG_MS = 10 * 60_000
const UNFINISHED = /^build-|\.(?:new|gone)$/u

/** The images in the state directory of this node. One process owns it. */
export class ImageStore implements Images {
  readonly #dir: string
  readonly #log: Log
  readonly #hostDisk: HostDisk
  readonly #tools: Tools
  readonly #host: Image
  readonly #installed = new InstalledPackages()
  readonly #manifests = new Map<string, Manifest>()
  readonly #feeds = new Map<string, LatestFeed<NodeImageEvent>>()
  readonly #failures = new Map<string, { readonly packages: readonly string[]; readonly error: AirlockError }>()
  readonly #turns = new KeyedLock()
  #imports = 0

  /** What a process that died in the middle left is removed. */
  constructor(options: {
    readonly stateDir: string
    readonly log: Log
    readonly hostDisk: HostDisk
    readonly tools: Tools
  }) {
    this.#tools = options.tools
    this.#dir = imagesDir(options.stateDir)
    this.#log = options.log
    this.#hostDisk = options.hostDisk
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 })
    for (const name of readdirSync(this.#dir)) {
      const path = join(this.#dir, name)
      if (UNFINISHED.test(name)) rmSync(path, { recursive: true, force: true })
      const manifest = readManifest(path)
      if (manifest?.name === name) this.#manifests.set(name, manifest)
    }
    this.#host = makeHostImage(options.stateDir, (path) =>
      options.log.warn('replaced a damaged file that sandboxes stand on', { path }),
    )
  }

  /** Throws `template_failed` when there is no such image, or the host is no longer the one it was built on. */
  find(name: string): Image {
    if (name === 'host' || name === this.#host.name) return this.#host
    const manifest = this.#manifests.get(name)
    if (!manifest) throw new AirlockError('template_failed', `The image ${name} is not on this node.`)
    if (manifest.source === 'imported') return this.#imported(manifest)
    if (isFresh(manifest.base, this.#installed)) return this.#ofPackages(manifest)
    throw new AirlockError('template_failed', `The host has changed since the image ${name} was built.`)
  }

  list(): NodeImages {
    const host = { name: this.#host.name, source: 'host', packages: [], bytes: 0, builtAt: 0 } as const
    const fresh = [...this.#manifests.values()].filter(
      ({ source, base }) => source === 'imported' || isFresh(base, this.#installed),
    )
    return {
      images: [{ ...host, packages: [] }, ...fresh.map(toNodeImage)],
      builds: [
        ...[...this.#feeds.keys()].map((key) => ({
          packages: key.split(' '),
          state: 'building' as const,
          error: null,
        })),
        ...[...this.#failures.values()].map(({ packages, error: { code, message } }) => ({
          packages: [...packages],
          state: 'failed' as const,
          error: { code, message },
        })),
      ],
    }
  }

  build(packages: readonly string[]): AsyncIterable<NodeImageEvent> {
    const key = keyOf(packages)
    const ready = key === '' ? this.list().images[0] : this.#findBuilt(key)
    if (ready) return once({ event: 'ended', image: toNodeImage(ready) })
    const under = this.#feeds.get(key)
    if (under) return under.values()
    const feed = new LatestFeed<NodeImageEvent>()
    this.#feeds.set(key, feed)
    void this.#buildInTurn(key, feed)
    return feed.values()
  }

  async import(tar: AsyncIterable<Buffer>, signal: AbortSignal): Promise<ImportedImage> {
    if (this.#imports >= IMPORTS) throw new AirlockError('template_failed', 'Too many images are imported at once.')
    const dir = this.#newDir()
    this.#imports++
    try {
      const tools = this.#tools
      const work = (until: AbortSignal) => importImage({ dir, tar, signal: until, tools })
      const { env, ...made } = await this.#hostDisk.guard(work, signal)
      return { image: toNodeImage(await this.#keep(dir, { ...made, builtAt: Date.now() })), env }
    } finally {
      this.#imports--
      await rm(dir, { recursive: true, force: true })
    }
  }

  async prune(references: ImageReferences, inUse: ReadonlySet<string>): Promise<readonly string[]> {
    const keys = new Set(references.packages.map(keyOf))
    const names = new Set([...references.names, ...inUse])
    const isOld = ({ builtAt }: Manifest) => builtAt < Date.now() - YOUNG_MS
    const isMeant = (image: Manifest) =>
      image.source === 'packages' && keys.has(keyOf(image.packages)) && isFresh(image.base, this.#installed)
    const garbage = [...this.#manifests.values()].filter(
      (image) => !names.has(image.name) && !isMeant(image) && (isOld(image) || references.dropped.includes(image.name)),
    )
    for (const { name } of garbage) {
      this.#manifests.delete(name)
      const gone = join(this.#dir, `${name}.gone`)
      // A name first, so that half of an image is never taken for a whole one.
      await rename(join(this.#dir, name), gone)
      await rm(gone, { recursive: true, force: true })
    }
    return garbage.map(({ name }) => name)
  }

  /** One at a time; those that wait say so. */
  async #buildInTurn(key: string, feed: LatestFeed<NodeImageEvent>): Promise<void> {
    const packages = key.split(' ')
    const wait = { event: 'progress', step: 'resolve', done: 0, total: null } as const
    feed.push({ ...wait, detail: this.#feeds.size > 1 ? 'waits for another build' : packages.join(' ') })
    this.#failures.delete(key)
    try {
      const image = await this.#turns.run('build', () => this.#build(packages, feed))
      this.#feeds.delete(key)
      feed.push({ event: 'ended', image: toNodeImage(image) }, 'last')
    } catch (cause) {
      const error = toAirlockError(cause)
      this.#log.warn('an image could not be built', { packages, error: cause })
      this.#remember(key, error)
      this.#feeds.delete(key)
      const { code, message, hint } = error
      feed.push({ event: 'error', error: { code, message, hint } }, 'last')
    }
  }

  async #build(packages: readonly string[], feed: LatestFeed<NodeImageEvent>): Promise<Manifest> {
    this.#hostDisk.assertRoom()
    const dir = this.#newDir()
    try {
      const made = await buildPackages({
        script: this.#tools.confined,
        packages,
        dir,
        aptDir: join(this.#dir, 'apt'),
        installed: this.#installed,
        roomBytes: Math.max(0, this.#hostDisk.freeBytes() - this.#hostDisk.reserveBytes),
        onProgress: (progress) => feed.push({ event: 'progress', ...progress }),
      })
      return await this.#keep(dir, { ...made, builtAt: Date.now() })
    } finally {
      await rm(dir, { recursive: true, force: true })
    }
  }

  /** From here on it is an image. The same again is the one that is there. */
  async #keep(dir: string, manifest: Manifest): Promise<Manifest> {
    const path = join(this.#dir, manifest.name)
    const known = this.#manifests.get(manifest.name)
    if (known) return known
    writeManifest(dir, manifest)
    if (existsSync(path)) rmSync(path, { recursive: true })
    renameSync(dir, path)
    this.#manifests.set(manifest.name, manifest)
    return manifest
  }

  #newDir(): string {
    const dir = join(this.#dir, `build-${randomText(12)}`)
    makeDirectory(dir)
    return dir
  }

  #remember(key: string, error: AirlockError): void {
    const [oldest] = this.#failures.keys()
    if (this.#failures.size >= FAILURES && oldest !== undefined) this.#failures.delete(oldest)
    this.#failures.set(key, { packages: key.split(' '), error })
  }

  #findBuilt(key: string): Manifest | undefined {
    return [...this.#manifests.values()].find(
      (image) => image.source === 'packages' && keyOf(image.packages) === key && isFresh(image.base, this.#installed),
    )
  }

  /** What packages bring lies over the system of the host, and our own files over both. */
  #ofPackages({ name }: Manifest): Image {
    const root = join(this.#dir, name, 'root')
    const over: Readonly<Record<string, string>> = {
      '/usr': stagedOverlay('usr'),
      '/etc/alternatives': stagedOverlay('alternatives'),
      '/etc/ld.so.cache': `${STAGED.rootfs}-1/etc/ld.so.cache`,
    }
    return {
      name,
      root: [...this.#host.root, root],
      overlays: {
        usr: [join(root, 'usr'), '/usr'],
        alternatives: [join(root, 'etc', 'alternatives'), '/etc/alternatives'],
      },
      binds: this.#host.binds.map(({ source, destination }) => ({ source: over[destination] ?? source, destination })),
      hasHostPrograms: true,
    }
  }

  #imported({ name }: Manifest): Image {
    const dir = join(this.#dir, name)
    return { name, root: [join(dir, 'top'), join(dir, 'root')], overlays: {}, binds: [], hasHostPrograms: false }
  }
}

/** Equal for the same packages in any order. */
function keyOf(packages: readonly string[]): string {
  return [...new Set(packages)].toSorted().join(' ')
}

function toNodeImage({ name, source, packages, bytes, builtAt }: NodeImage): NodeImage {
  return { name, source, packages, bytes, builtAt }
}

async function* once(event: NodeImageEvent): AsyncGenerator<NodeImageEvent> {
  yield event
}
