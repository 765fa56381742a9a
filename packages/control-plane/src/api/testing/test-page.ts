import { gzipSync } from 'node:zlib'
import type { PageFile, PageFiles } from '../page/page-files.ts'

/** Two small files. */
export const TEST_PAGE: PageFiles = new Map([
  ['/', pageFile('text/html; charset=utf-8', '<!doctype html><title>Airlock</title>', 'no-cache')],
  ['/assets/main-AAAA.js', pageFile('text/javascript; charset=utf-8', '1', 'public, max-age=31536000, immutable')],
])

function pageFile(type: string, text: string, cache: PageFile['cache']): PageFile {
  const bytes = Buffer.from(text)
  return { type, bytes, zipped: gzipSync(bytes), etag: `"${text.length}"`, cache }
}
