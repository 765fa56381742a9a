import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { AirlockError } from '../errors.ts'
import type { Template } from '../nouns.ts'
import { type ImageBytes, type ImportOptions, type OpenImage, Templates } from '../templates.ts'
import { tarDirectory } from './tar.ts'

/**
 * A root file system, an OCI layout or the output of `docker save`: a directory or a tar on this machine, or the bytes of a
 * tar as they come.
 */
export type ImageSource = { readonly path: string } | ImageBytes

/** Templates that can be imported from files of this machine. */
export class LocalTemplates extends Templates {
  /** Imports an image, which replaces the one that the template had. */
  override async import(name: string, source: ImageSource, options: ImportOptions = {}): Promise<Template> {
    return 'path' in source
      ? this.send(name, await openPath(source.path), options)
      : super.import(name, source, options)
  }
}

async function openPath(path: string): Promise<OpenImage> {
  const found = await stat(path).catch((cause: unknown) => {
    throw new AirlockError('invalid_request', `${path} cannot be read.`, {
      cause,
      hint: 'Give a directory or a tar that is there.',
    })
  })
  if (found.isDirectory()) return { bytes: tarDirectory(path), total: null }
  return { bytes: createReadStream(path), total: found.size }
}
