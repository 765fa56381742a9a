import { AirlockError } from '@airlock/sdk'
import { BOUNDS } from '@airlock/contract/defaults'
import { readFile } from 'node:fs/promises'

/** A program of this machine. */
export async function readCodeFile(path: string): Promise<string> {
  const bytes = await readFile(path)
  return decode(bytes, { limit: BOUNDS.codeBytes, what: path })
}

/** What was piped to us, whole. */
export async function readStdin(what: 'code' | 'input'): Promise<string> {
  const limit = what === 'code' ? BOUNDS.codeBytes : BOUNDS.stdinBytes
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    length += chunk.length
    if (length > limit) break
  }
  return decode(Buffer.concat(chunks), { limit, what: 'stdin' })
}

function decode(bytes: Buffer, { limit, what }: { readonly limit: number; readonly what: string }): string {
  if (bytes.length > limit)
    throw new AirlockError('body_too_large', `${what} has more than ${limit} bytes.`, {
      hint: 'Copy it into a sandbox with "airlock cp", and run it there.',
    })
  return bytes.toString('utf8')
}
