import { LocalTree, type PackOptions, type Skipped } from './local-tree.ts'
import { type Unpacked, unpackTree } from './unpack-tree.ts'

/** A directory on its way into an archive. */
export interface PackedTree {
  /** Names that no archive may hold. Complete once the bytes were read. */
  readonly skipped: readonly Skipped[]
  /** The digest of what has passed. */
  readonly manifest: string
  bytes(): AsyncIterable<Uint8Array>
}

/** Directories of this machine as archives, and archives as directories. */
export interface LocalTrees {
  pack(directory: string, options: PackOptions): PackedTree
  // oxlint-disable-next-line max-params -- what, where to, and how
  unpack(bytes: AsyncIterable<Uint8Array>, directory: string, options: PackOptions): Promise<Unpacked>
}

export const LOCAL_TREES: LocalTrees = {
  pack: (directory, options) => new LocalTree(directory, options),
  unpack: unpackTree,
}
