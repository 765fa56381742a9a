import { AirlockError, BOUNDS } from '@airlock/contract'
import { lstatSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ByteSource } from './byte-source.ts'
import { decompressed } from './decompress.ts'
import { partsOf } from './member-name.ts'
import { findImage } from './oci-image.ts'
import { Spool } from './spool.ts'
import { readTar, type TarEntry } from './tar-reader.ts'
import { Tree, type TreeLimits } from './tree.ts'

/** What an unpacked image says about itself. All of it is hostile. */
export interface Unpacked {
  readonly env: readonly string[]
  /** The lines of its own files, where it has them. */
  readonly passwd: readonly string[]
  readonly group: readonly string[]
}

/** What the first file of an archive of layers can be called. */
const LAYOUT = /^(?:blobs(?:\/|$)|(?:index|manifest)\.json$|oci-layout$|repositories$|[0-9a-f]{64}(?:\/|\.json$|$))/u
const LIMITS: TreeLimits = { bytes: BOUNDS.imageBytes, entries: BOUNDS.imageEntries }
const MAX_LINES = 512
const MAX_FILE_BYTES = 256 * 1024

/**
 * Unpacks a root file system, an OCI layout or what `docker save` writes into the directory `root`, which must be empty.
 * `spool` is made and gone again. Preconditions: this process has no right that the archive must not have.
 */
export async function unpack(
  tar: AsyncIterable<Buffer>,
  places: { readonly root: string; readonly spool: string },
  limits: TreeLimits = LIMITS,
): Promise<Unpacked> {
  // Headers and padding come on top of what files hold.
  const maxBytes = limits.bytes + limits.entries * 2048
  const source = new ByteSource(decompressed(tar), maxBytes)
  const entries = readTar(source)
  const first = await firstNamed(entries)
  if (!first) throw new AirlockError('template_invalid', 'The archive is empty.')
  const all = startingWith(first, entries)
  const isLayout = LAYOUT.test(partsOf(first.name).join('/'))
  const env = isLayout
    ? await unpackLayers(all, places, { limits, maxBytes })
    : await unpackPlain(all, places.root, limits)
  await source.drain()
  return { env, passwd: linesOf(places.root, 'passwd'), group: linesOf(places.root, 'group') }
}

async function unpackPlain(
  entries: AsyncIterable<TarEntry>,
  root: string,
  limits: TreeLimits,
): Promise<readonly string[]> {
  await new Tree(root, limits).apply(entries, 'plain')
  return []
}

async function unpackLayers(
  entries: AsyncIterable<TarEntry>,
  places: { readonly root: string; readonly spool: string },
  bounds: { readonly limits: TreeLimits; readonly maxBytes: number },
): Promise<readonly string[]> {
  const spool = new Spool(places.spool, bounds.limits.bytes)
  try {
    for await (const entry of entries) await spool.add(entry)
    const { layers, env } = findImage(spool)
    const tree = new Tree(places.root, bounds.limits)
    for (const layer of layers)
      await tree.apply(readTar(new ByteSource(decompressed(spool.stream(layer)), bounds.maxBytes)), 'layer')
    return env
  } finally {
    spool.remove()
  }
}

/** The first entry that is not the root itself; it tells what the archive is. */
async function firstNamed(entries: AsyncGenerator<TarEntry>): Promise<TarEntry | undefined> {
  for (;;) {
    const next = await entries.next()
    if (next.done === true) return undefined
    if (partsOf(next.value.name).length > 0) return next.value
  }
}

async function* startingWith(first: TarEntry, rest: AsyncGenerator<TarEntry>): AsyncGenerator<TarEntry> {
  yield first
  yield* rest
}

/** Read only where it is a plain file below plain directories: a link of the image would lead to files of the host. */
function linesOf(root: string, name: 'passwd' | 'group'): readonly string[] {
  const path = join(root, 'etc', name)
  const isPlain = lstatSync(join(root, 'etc'), { throwIfNoEntry: false })?.isDirectory() === true
  const found = isPlain ? lstatSync(path, { throwIfNoEntry: false }) : undefined
  if (found?.isFile() !== true || found.size > MAX_FILE_BYTES) return []
  return readFileSync(path, 'utf8').split('\n').slice(0, MAX_LINES)
}
