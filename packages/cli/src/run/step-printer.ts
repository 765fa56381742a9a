import { outputBytes, RichOutput, type Step, type StepError, type StepEvent } from '@airlock/sdk'
import { OutputPrinter } from './attach.ts'
import { endSentence } from '../text/end-sentence.ts'
import { missingModule } from '../text/missing-module.ts'
import { inlinePicture } from '../text/inline-picture.ts'
import { htmlToText } from '../text/html-text.ts'
import type { Pictures } from '../text/pictures.ts'
import { sanitizeText } from '../text/sanitize.ts'
import type { Terminal } from '../text/terminal.ts'
import { formatBytes } from '../text/units.ts'

const NEWLINE = 0x0a

/** Shows what a step says as it comes: text as it is, values and tables as text, pictures as the names of their files. */
export class StepPrinter {
  readonly #terminal: Terminal
  readonly #pictures: Pictures
  readonly #output: OutputPrinter
  readonly #noStdin: string | undefined
  #atLineStart = true

  /** `noStdin` is said where code wanted to read its input, and none was given. */
  constructor(terminal: Terminal, pictures: Pictures, noStdin?: string) {
    this.#noStdin = noStdin
    this.#terminal = terminal
    this.#pictures = pictures
    this.#output = new OutputPrinter(terminal)
  }

  async print(event: StepEvent): Promise<void> {
    if (event.event === 'output') await this.#write(event.stream, outputBytes(event))
    else if (event.event === 'rich') await this.#show(new RichOutput(event.output))
    else if (event.event === 'truncated')
      await this.#note(
        `output over ${formatBytes(event.limitBytes)} is not shown. To keep all of it, write it to a file in the sandbox.`,
      )
    else if (event.event === 'ended') await this.#end(event.step)
  }

  async #write(stream: 'stdout' | 'stderr', bytes: Uint8Array): Promise<void> {
    if (bytes.length === 0) return
    await this.#output.write(stream, bytes)
    this.#atLineStart = bytes.at(-1) === NEWLINE
  }

  async #show(output: RichOutput): Promise<void> {
    await this.#startLine()
    const file = await this.#pictures.save(output)
    const inline = this.#terminal.showsPictures ? inlinePicture(output) : undefined
    if (inline !== undefined) await this.#terminal.write('stdout', inline)
    if (file !== undefined) return this.#terminal.note(`Saved ${file}`)
    const text = textOf(output)
    if (text !== undefined) await this.#write('stdout', Buffer.from(text.endsWith('\n') ? text : `${text}\n`))
  }

  async #end(step: Step): Promise<void> {
    await this.#output.finish()
    if (step.error) {
      await this.#startLine()
      const said = describe(step.error)
      const text = process.stderr.isTTY ? sanitizeText(said) : said
      await this.#terminal.write('stderr', `${this.#terminal.style('red', text, 'stderr')}\n`)
    }
    for (const note of this.#notesOn(step)) await this.#note(note)
    if (this.#terminal.isTty) await this.#startLine()
  }

  #notesOn(step: Step): readonly string[] {
    const { error } = step
    // What the sandbox ended of an interpreter says so itself.
    const why = error?.name === 'RuntimeCrashed' || step.cause === 'timeout' ? undefined : endSentence(step)
    const missing = error === null ? undefined : missingModule(error)
    const unread = error?.name === 'EOFError' ? this.#noStdin : undefined
    const anew = step.restarted ? 'the interpreter was started anew: what it remembered is gone' : undefined
    return [why, missing, unread, anew].filter((note) => note !== undefined)
  }

  async #note(text: string): Promise<void> {
    await this.#startLine()
    this.#terminal.note(`airlock: ${text}`)
  }

  /** On a terminal, where text without an end of line would run into the next thing. */
  async #startLine(): Promise<void> {
    if (this.#atLineStart || !this.#terminal.isTty) return
    await this.#terminal.write('stdout', '\n')
    this.#atLineStart = true
  }
}

/** A status of the shell needs no name. Where code was when its time was up does not say that it was. */
function describe({ name, message, traceback }: StepError): string {
  if (traceback !== '') return traceback.trimEnd() + (name === 'Timeout' ? `\n${name}: ${message}` : '')
  return name === 'ExitStatus' ? message : `${name}: ${message}`
}

/** The plainest form that it has. */
function textOf(output: RichOutput): string | undefined {
  if (output.text !== undefined) return output.text
  if (output.html !== undefined) return htmlToText(output.html)
  if (output.json !== undefined) return JSON.stringify(output.json, null, 2)
  return output.markdown ?? output.latex
}
