import type { ImageReferences, ImportedImage, NodeImage, NodeImageEvent, NodeImages } from '@airlock/contract'

/**
 * What sandboxes of this node can stand on. An image is named after what is in it, is whole or not there, and never
 * changes; the death of this process in the middle leaves nothing that a later start would take for one.
 */
export interface Images {
  list(): NodeImages

  /**
   * The image of these Debian packages over the host's own system, built now unless it is there. One is built at a time;
   * whoever asks for the same one sees the same events. Ends with `ended` or `error`; goes on when nobody listens.
   */
  build(packages: readonly string[]): AsyncIterable<NodeImageEvent>

  /** Takes a root file system, an OCI layout or what `docker save` writes. Hostile bytes: `template_invalid` names the entry. */
  import(tar: AsyncIterable<Buffer>, signal: AbortSignal): Promise<ImportedImage>

  /** Removes what is neither referred to, nor in `inUse`, nor too young to be known yet. Answers the names. */
  prune(references: ImageReferences, inUse: ReadonlySet<string>): Promise<readonly NodeImage['name'][]>
}
