import { AirlockError, type Artifact, type Artifacts } from '@airlock/sdk'
import { createHash, randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { rename, rm, stat } from 'node:fs/promises'
import { basename, join, posix } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Terminal } from '../text/terminal.ts'

/** Downloads it, whole or not at all. Answers where it is; undefined when it went to stdout. */
export async function getArtifact(
  terminal: Terminal,
  of: { readonly artifacts: Artifacts; readonly found: Artifact; readonly output: string | undefined },
): Promise<string | undefined> {
  const { artifacts, found, output } = of
  const hash = createHash('sha256')
  const bytes = hashed(artifacts.download(found.id), hash)
  if (output === '-') {
    for await (const chunk of bytes) await terminal.write('stdout', chunk)
    await terminal.flush()
    throwUnlessSame(found, hash.digest('hex'))
    return undefined
  }
  const path = await targetOf(found, output)
  const partial = `${path}.${randomUUID().slice(0, 8)}.part`
  try {
    await pipeline(bytes, createWriteStream(partial, { flags: 'wx' }))
    throwUnlessSame(found, hash.digest('hex'))
    await rename(partial, path)
  } finally {
    await rm(partial, { force: true })
  }
  return path
}

async function targetOf({ name, id }: Artifact, output: string | undefined): Promise<string> {
  const own = safeName(posix.basename(name)) ?? id
  if (output === undefined) return own
  const there = await stat(output).catch(() => undefined)
  return there?.isDirectory() === true ? join(output, own) : output
}

/** A name that a sandbox made up never leads out of the directory. */
function safeName(name: string): string | undefined {
  const isPlain = name !== '' && name !== '.' && name !== '..' && name === basename(name)
  return isPlain ? name : undefined
}

async function* hashed(
  bytes: AsyncIterable<Uint8Array>,
  hash: { update(chunk: Uint8Array): unknown },
): AsyncGenerator<Uint8Array> {
  for await (const chunk of bytes) {
    hash.update(chunk)
    yield chunk
  }
}

function throwUnlessSame({ sha256, id }: Artifact, arrived: string): void {
  if (arrived === sha256) return
  throw new AirlockError('internal', `The content of ${id} is not what was kept: its SHA-256 differs.`)
}
