import { AirlockError } from '../errors.ts'

export interface ServerEvent {
  readonly id: string | undefined
  readonly event: string
  readonly data: string
}

/** Longest line of an event stream: a rich output has up to 8 MiB, and JSON may need two characters for one of them. */
const MAX_LINE = 20 * 1024 * 1024

/** Server-sent events of a body. Comments and unknown fields are skipped; what a broken stream left unfinished, too. */
export async function* parseServerEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  let id: string | undefined
  let event = 'message'
  let data: string[] = []
  for await (const line of lines(body)) {
    if (line === '') {
      if (data.length > 0) yield { id, event, data: data.join('\n') }
      id = undefined
      event = 'message'
      data = []
      continue
    }
    const [, name, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
    if (name === 'id') id = value
    else if (name === 'event') event = value
    else if (name === 'data') data.push(value)
  }
}

async function* lines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let parts: string[] = []
  let length = 0
  for await (const chunk of body) {
    const pieces = decoder.decode(chunk, { stream: true }).split('\n')
    const rest = pieces.pop() ?? ''
    for (const piece of pieces) {
      const line = parts.join('') + piece
      parts = []
      length = 0
      yield line.endsWith('\r') ? line.slice(0, -1) : line
    }
    parts.push(rest)
    length += rest.length
    if (length > MAX_LINE) throw new AirlockError('internal', 'A line of the event stream is too long.')
  }
}
