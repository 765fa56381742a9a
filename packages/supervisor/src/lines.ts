import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'

const MAX_LINE_CHARS = 64 * 1024

/** Calls `onLine` for each line of a stream. A line beyond the bound is cut, and the rest of it dropped. */
export function readLines(stream: Readable, onLine: (line: string) => void): void {
  const decoder = new StringDecoder('utf8')
  let pending = ''
  const take = (text: string) => {
    const parts = text.split('\n')
    for (const [index, part] of parts.entries()) {
      if (pending.length < MAX_LINE_CHARS) pending += part.slice(0, MAX_LINE_CHARS - pending.length)
      if (index === parts.length - 1) break
      if (pending !== '') onLine(pending)
      pending = ''
    }
  }
  stream.on('data', (chunk: Buffer) => take(decoder.write(chunk)))
  stream.on('end', () => take(`${decoder.end()}\n`))
  // A pipe that breaks ends the output; how the process ended is told by its exit.
  stream.on('error', () => take('\n'))
}
