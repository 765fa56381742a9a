import { posix } from 'node:path'
import type { Artifact, ArtifactProvenance } from '@airlock/contract'
import { INSIDE, pathBytes } from '@airlock/contract/guest'
import type { StoredArtifact } from '../store/artifacts.ts'
import type { StoredSandbox } from '../store/sandboxes.ts'

export function toArtifact({ attempt: _attempt, state: _state, ...row }: StoredArtifact): Artifact {
  const { sha256, createdAt, expiresAt } = row
  return { ...row, sha256: sha256 ?? '', createdAt: toTime(createdAt), expiresAt: toTime(expiresAt) }
}

/** How a file is called as an artifact: relative to /workspace where it is below that. Different bytes have different names. */
export function nameOf(path: string): string {
  const bytes = pathBytes(path) ?? Buffer.from(path)
  const base = Buffer.from(`${INSIDE.workspace}/`)
  return escaped(bytes.subarray(0, base.length).equals(base) ? bytes.subarray(base.length) : bytes)
}

/** Printable UTF-8 as it is; every other byte as `\xNN`, and a backslash doubled. */
function escaped(bytes: Buffer): string {
  const text = bytes.toString('utf8')
  if (Buffer.from(text).equals(bytes))
    return text
      .replaceAll('\\', '\\\\')
      .replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (char) => asBytes(Buffer.from(char)))
  return Array.from(bytes, (byte) => {
    if (byte === 0x5c) return '\\\\'
    return byte >= 0x20 && byte < 0x7f ? String.fromCodePoint(byte) : asBytes(Buffer.from([byte]))
  }).join('')
}

function asBytes(bytes: Buffer): string {
  return Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')
}

export function provenanceOf(
  { image, template, isolation }: StoredSandbox,
  codeSha256: string | null,
): ArtifactProvenance {
  return { image, template, runtime: isolation?.runtime ?? null, tier: isolation?.tier ?? null, codeSha256 }
}

export function mediaTypeOf(name: string): string {
  return MEDIA_TYPES[posix.extname(name).slice(1).toLowerCase()] ?? 'application/octet-stream'
}

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  bz2: 'application/x-bzip2',
  css: 'text/css',
  csv: 'text/csv',
  gif: 'image/gif',
  gz: 'application/gzip',
  html: 'text/html',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  js: 'text/javascript',
  json: 'application/json',
  log: 'text/plain',
  md: 'text/markdown',
  parquet: 'application/vnd.apache.parquet',
  pdf: 'application/pdf',
  png: 'image/png',
  svg: 'image/svg+xml',
  tar: 'application/x-tar',
  txt: 'text/plain',
  webp: 'image/webp',
  xml: 'application/xml',
  xz: 'application/x-xz',
  yaml: 'application/yaml',
  yml: 'application/yaml',
  zip: 'application/zip',
  zst: 'application/zstd',
}

export function toTime(epochMs: number): string {
  return new Date(epochMs).toISOString()
}
