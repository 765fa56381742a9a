import { BOUNDS, step, stepOutput, type Step, type StepError, type StepOutput } from '@airlock/contract'
import type { ContentBlock } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { BoundedText } from './bounded-text.ts'
import { textFields, type TextOutput } from './text-output.ts'
import { text, type ToolAnswer } from './tool.ts'

/** Pictures that every client can show. */
const IMAGES = ['image/png', 'image/jpeg'] as const
/** The best form for a model to read, best first. */
const TEXTS = ['text/markdown', 'text/plain', 'text/latex', 'text/html', 'image/svg+xml'] as const
const MOST_OUTPUTS = 64
const KEPT_BYTES = 2 * BOUNDS.richBytes

export const stepAnswer = z.object({
  ...step.pick({
    stepId: true,
    session: true,
    sandbox: true,
    status: true,
    error: true,
    cause: true,
    restarted: true,
    truncated: true,
    durationMs: true,
  }).shape,
  ...textFields,
  outputs: z
    .array(z.object({ kind: stepOutput.shape.kind, types: z.array(z.string()), text: z.string() }))
    .describe('Rich outputs in their most readable form; pictures are in the content.'),
  cutOutputs: z.int().describe('How many rich outputs were left out.'),
})

/** What a step said, for programs and for models. Pictures become pictures. */
export function answerStep(
  ended: Step,
  said: { readonly text: TextOutput; readonly outputs: Outputs },
): ToolAnswer<z.input<typeof stepAnswer>> {
  const { kept, dropped } = said.outputs
  const pictures = new PictureBudget()
  const shown = kept.flatMap((output) => [...pictures.take(output), ...textBlocks(output)])
  const cutOutputs = dropped + pictures.refused
  const outputs = kept.map((output) => ({
    kind: output.kind,
    types: Object.keys(output.data),
    text: readable(output) ?? '',
  }))
  const content = [...said.text.content(), ...shown, ...notes(ended, cutOutputs)]
  return {
    structured: { ...ended, ...said.text.fields(), outputs, cutOutputs },
    content: content.length > 0 ? content : [text('[no output]')],
    failed: ended.status !== 'completed',
  }
}

/** Collects outputs as they come, and counts what is past the bounds. */
export class Outputs {
  readonly #kept: StepOutput[] = []
  #bytes = 0
  #dropped = 0

  get kept(): readonly StepOutput[] {
    return this.#kept
  }

  get dropped(): number {
    return this.#dropped
  }

  push(output: StepOutput): void {
    const bytes = JSON.stringify(output).length
    if (this.#kept.length >= MOST_OUTPUTS || this.#bytes + bytes > KEPT_BYTES) {
      this.#dropped++
      return
    }
    this.#bytes += bytes
    this.#kept.push(output)
  }
}

class PictureBudget {
  #left: number = BOUNDS.richBytes
  refused = 0

  take(output: StepOutput): readonly ContentBlock[] {
    const mimeType = IMAGES.find((type) => typeof output.data[type] === 'string')
    const data = mimeType === undefined ? undefined : output.data[mimeType]
    if (mimeType === undefined || typeof data !== 'string') return []
    if (data.length > this.#left) {
      this.refused++
      return []
    }
    this.#left -= data.length
    return [{ type: 'image', data: data.replaceAll(/\s/g, ''), mimeType }]
  }
}

function textBlocks(output: StepOutput): readonly ContentBlock[] {
  const isPicture = IMAGES.some((type) => output.data[type] !== undefined)
  const words = isPicture ? undefined : readable(output)
  return words === undefined || words === '' ? [] : [text(words)]
}

function readable(output: StepOutput): string | undefined {
  const type = TEXTS.find((name) => typeof output.data[name] === 'string')
  const value = type === undefined ? output.data['application/json'] : output.data[type]
  if (value === undefined) return undefined
  return BoundedText.of(typeof value === 'string' ? value : JSON.stringify(value)).text()
}

function notes(ended: Step, cutOutputs: number): readonly ContentBlock[] {
  const { error } = ended
  return [
    ...(error ? [text(BoundedText.of(describe(error)).text())] : []),
    ...(ended.restarted ? [text('[The interpreter was started anew: what it remembered is gone.]')] : []),
    ...(ended.truncated ? [text('[Output past the limit was dropped.]')] : []),
    ...(cutOutputs > 0 ? [text(`[${cutOutputs} rich outputs were too large or too many to show.]`)] : []),
  ]
}

/** Where code was when its time was up does not say that it was. */
function describe({ name, message, traceback }: StepError): string {
  const said = `${name}: ${message}`
  if (traceback === '') return said
  return name === 'Timeout' ? `${traceback.trimEnd()}\n${said}` : traceback
}
