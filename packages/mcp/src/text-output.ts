import { z } from 'zod'
import { BoundedText } from './bounded-text.ts'
import { text } from './tool.ts'
import type { ContentBlock } from '@modelcontextprotocol/server'

export interface OutputEvent {
  readonly stream: 'stdout' | 'stderr'
  readonly text?: string | undefined
  readonly base64?: string | undefined
}

/** The fields of an answer that hold what was printed. */
export const textFields = {
  stdout: z.string(),
  stderr: z.string(),
  cutBytes: z.int().describe('How many bytes are missing in the middle of stdout and stderr.'),
}

/** What was printed, bounded. */
export class TextOutput {
  readonly #streams = { stdout: new BoundedText(), stderr: new BoundedText() }

  push(event: OutputEvent): void {
    this.#streams[event.stream].push(bytesOf(event))
  }

  fields(): { readonly stdout: string; readonly stderr: string; readonly cutBytes: number } {
    const { stdout, stderr } = this.#streams
    return { stdout: stdout.text(), stderr: stderr.text(), cutBytes: stdout.cutBytes + stderr.cutBytes }
  }

  /** For a model: what is empty is not said. */
  content(): readonly ContentBlock[] {
    const { stdout, stderr } = this.fields()
    return [...(stdout === '' ? [] : [text(stdout)]), ...(stderr === '' ? [] : [text(`stderr:\n${stderr}`)])]
  }
}

function bytesOf(event: OutputEvent): Uint8Array {
  return event.base64 === undefined ? Buffer.from(event.text ?? '') : Buffer.from(event.base64, 'base64')
}
