import type { CommandEvent } from '@airlock/sdk/browser'
import { outputBytes } from '@airlock/sdk/browser'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useSession, toError } from '../session.ts'
import { AnsiReader, type Piece } from '../text/ansi.ts'

/** Of one command on the page. The server and the command line have the rest. */
const MAX_CHARACTERS = 400_000
const AT_END_PX = 24

/** The output of a command as it comes: pieces of text, never HTML. */
export function Output({ sandbox, command }: { readonly sandbox: string; readonly command: string }) {
  const { client } = useSession()
  const pre = useRef<HTMLPreElement>(null)
  const [note, setNote] = useState<string>()
  useEffect(() => {
    const gone = new AbortController()
    const target = pre.current
    if (!target) return undefined
    target.replaceChildren()
    setNote(undefined)
    const sink = new Sink(target)
    const follow = async (): Promise<void> => {
      const handle = await client.sandboxes.get(sandbox, gone.signal)
      for await (const event of handle.command(command).events({ signal: gone.signal })) {
        sink.take(event)
        if (event.event === 'truncated') setNote('The output went over its cap; the rest is not shown.')
        if (sink.isFull) return setNote(`The first part is shown. All of it: airlock logs ${command}`)
      }
      if (sink.isEmpty) setNote('The command said nothing.')
    }
    follow().catch((error: unknown) => {
      if (!gone.signal.aborted) setNote(toError(error).message)
    })
    return () => gone.abort()
  }, [sandbox, command])
  return (
    <div class="output">
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls, so the keyboard must reach it */}
      <pre ref={pre} tabIndex={0} role="log" aria-label="Output" />
      {note !== undefined && <p class="note">{note}</p>}
    </div>
  )
}

/** Appends text nodes. While the reader is at the end, it stays there. */
class Sink {
  readonly #target: HTMLElement
  readonly #streams = {
    stdout: { decoder: new TextDecoder(), reader: new AnsiReader() },
    stderr: { decoder: new TextDecoder(), reader: new AnsiReader() },
  }
  #characters = 0

  constructor(target: HTMLElement) {
    this.#target = target
  }

  get isFull(): boolean {
    return this.#characters >= MAX_CHARACTERS
  }

  get isEmpty(): boolean {
    return this.#characters === 0
  }

  take(event: CommandEvent): void {
    if (event.event === 'output') {
      const { decoder, reader } = this.#streams[event.stream]
      this.#show(event.stream, reader.read(decoder.decode(outputBytes(event), { stream: true })))
    }
    if (event.event === 'ended')
      for (const stream of ['stdout', 'stderr'] as const) {
        const { decoder, reader } = this.#streams[stream]
        this.#show(stream, [...reader.read(decoder.decode()), ...reader.finish()])
      }
  }

  #show(stream: 'stdout' | 'stderr', pieces: readonly Piece[]): void {
    const target = this.#target
    const isAtEnd = target.scrollHeight - target.scrollTop - target.clientHeight < AT_END_PX
    for (const { text, look } of pieces) {
      const piece = document.createElement('span')
      piece.className = `${stream} ${look}`.trim()
      piece.textContent = text
      target.append(piece)
      this.#characters += text.length
    }
    if (isAtEnd) target.scrollTop = target.scrollHeight
  }
}
