import { AirlockError } from '@airlock/contract'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

/** One file of the page, as it is sent. */
export interface PageFile {
  readonly type: string
  readonly bytes: Buffer
  readonly zipped: Buffer
  readonly etag: string
  /** Files with a hash in their names never change. */
  readonly cache: 'public, max-age=31536000, immutable' | 'no-cache'
}

/** By path: `/` and `/assets/<name>`. */
export type PageFiles = ReadonlyMap<string, PageFile>

const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}

/** Reads the whole page once. Fails closed: a server without its page says so at the start. */
export function readPageFiles(directory: string): PageFiles {
  try {
    const assets = readdirSync(join(directory, 'assets')).filter((name) => TYPES[extensionOf(name)] !== undefined)
    return new Map([
      [
        '/',
        fileOf(readFileSync(join(directory, 'index.html')), { type: 'text/html; charset=utf-8', cache: 'no-cache' }),
      ],
      ...assets.map((name): [string, PageFile] => {
        const type = TYPES[extensionOf(name)] ?? ''
        const bytes = readFileSync(join(directory, 'assets', name))
        return [`/assets/${name}`, fileOf(bytes, { type, cache: 'public, max-age=31536000, immutable' })]
      }),
    ])
  } catch (cause) {
    throw new AirlockError('config_invalid', `The page is not built in ${directory}.`, { cause, hint: 'npm run build' })
  }
}

function fileOf(bytes: Buffer, of: Pick<PageFile, 'type' | 'cache'>): PageFile {
  const etag = `"${createHash('sha256').update(bytes).digest('hex').slice(0, 32)}"`
  return { ...of, bytes, zipped: gzipSync(bytes, { level: 9 }), etag }
}

function extensionOf(name: string): string {
  return /\.(\w+)$/.exec(name)?.[1] ?? ''
}
