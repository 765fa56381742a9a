import { AirlockError } from '@airlock/contract'
import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import { posix } from 'node:path'
import type { FastifyReply } from 'fastify'
import type { Answer } from './call.ts'
import type { Exchange } from './reply.ts'
import { exactly } from './stream.ts'

type File = Extract<Answer, { kind: 'file' }>
type Part = { readonly from: number; readonly to: number }

/** Sends a file that never changes, whole or one range of it. It is always an attachment: no browser shows it as a page of ours. */
export async function sendFile(file: File, { request, reply }: Exchange): Promise<FastifyReply> {
  const etag = `"${file.sha256}"`
  if (isKnown(request.headers, etag)) return reply.code(304).header('etag', etag).send()
  const part = rangeOf(request.headers, { size: file.size, etag })
  if (part === 'outside') {
    reply.header('content-range', `bytes */${file.size}`)
    throw new AirlockError('range_invalid', `The artifact has ${file.size} bytes.`)
  }
  const { from, to } = part ?? { from: 0, to: file.size - 1 }
  const length = to - from + 1
  // A failure to open is an answer; nothing of this was sent yet.
  const bytes = length === 0 ? Readable.from([]) : Readable.from(exactly(length, await file.open({ from, to })), ONE)
  if (part) reply.code(206).header('content-range', `bytes ${from}-${to}/${file.size}`)
  return reply
    .headers({
      'accept-ranges': 'bytes',
      'content-length': length,
      'content-disposition': `attachment; filename*=UTF-8''${encodeName(file.name)}`,
      etag,
    })
    .type(file.type)
    .send(bytes)
}

const ONE = { highWaterMark: 1 }

function isKnown({ 'if-none-match': given }: IncomingHttpHeaders, etag: string): boolean {
  if (given === undefined) return false
  return given.split(',').some((one) => one.trim() === '*' || one.trim().replace(/^W\//, '') === etag)
}

/** Undefined is all of it: without a range, with several, or with one that is no range of bytes. */
function rangeOf(
  { range, 'if-range': onlyIf }: IncomingHttpHeaders,
  { size, etag }: { readonly size: number; readonly etag: string },
): Part | 'outside' | undefined {
  const given = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range ?? '')
  const isStale = onlyIf !== undefined && onlyIf !== etag
  const [, first = '', last = ''] = given ?? []
  if (isStale || (first === '' && last === '')) return undefined
  return first === '' ? lastOf(size, Number(last)) : partOf(size, Number(first), last === '' ? size : Number(last))
}

function partOf(size: number, from: number, to: number): Part | 'outside' | undefined {
  if (to < from && to !== size) return undefined
  return from >= size ? 'outside' : { from, to: Math.min(to, size - 1) }
}

function lastOf(size: number, count: number): Part | 'outside' {
  return count === 0 || size === 0 ? 'outside' : { from: Math.max(0, size - count), to: size - 1 }
}

/** The last name of a path, for RFC 8187. */
function encodeName(name: string): string {
  return encodeURIComponent(posix.basename(name).toWellFormed() || 'artifact').replaceAll(
    /['()*!]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
