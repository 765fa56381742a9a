import { createHash } from 'node:crypto'
import { AirlockError } from '@airlock/contract'
import type { EmbeddingsBody } from '../request/embeddings.ts'
import { countDemoTokens } from './compose-demo.ts'
import { DEMO_MODEL } from './demo-model.ts'

const DEFAULT_DIMENSIONS = 64
const MAX_DIMENSIONS = 256
const MAX_INPUTS = 256

/** Vectors of length one that are the same for the same text, and mean nothing. */
export function embedDemo({
  input,
  dimensions = DEFAULT_DIMENSIONS,
  encoding_format = 'float',
}: EmbeddingsBody): object {
  const inputs = listInputs(input)
  if (dimensions > MAX_DIMENSIONS || inputs.length > MAX_INPUTS)
    throw new AirlockError(
      'invalid_request',
      `${DEMO_MODEL} has at most ${MAX_DIMENSIONS} dimensions and takes at most ${MAX_INPUTS} inputs.`,
    )
  const data = inputs.map((one, index) => {
    const vector = vectorOf(JSON.stringify(one), dimensions)
    const embedding = encoding_format === 'base64' ? Buffer.from(vector.buffer).toString('base64') : [...vector]
    return { object: 'embedding', index, embedding }
  })
  const tokens = inputs.reduce<number>((sum, one) => sum + countDemoTokens(one), 0)
  return { object: 'list', model: DEMO_MODEL, data, usage: { prompt_tokens: tokens, total_tokens: tokens } }
}

function listInputs(input: EmbeddingsBody['input']): readonly unknown[] {
  if (typeof input === 'string') return [input]
  return typeof input[0] === 'number' ? [input] : input
}

function vectorOf(text: string, dimensions: number): Float32Array<ArrayBuffer> {
  const digest = createHash('sha256').update(text).digest()
  const values = Array.from({ length: dimensions }, (_, at) => {
    const block = createHash('sha256').update(digest).update(String(at)).digest()
    return block.readInt32LE() / 2 ** 31
  })
  const length = Math.hypot(...values)
  return Float32Array.from(values, (value) => value / length)
}
