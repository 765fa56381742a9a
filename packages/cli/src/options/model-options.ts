import { DEFAULTS } from '@airlock/contract/defaults'
import type { SomeModelLimits } from '@airlock/sdk'
import type { Command } from 'commander'
import { collectWords } from '../text/pairs.ts'
import { numberWithin } from '../text/units.ts'
import { UsageError } from '../usage.ts'

export interface ModelOptions {
  readonly model?: readonly string[]
  readonly modelCalls?: number
  readonly modelTokens?: number
  readonly modelDollars?: number
  readonly modelConcurrency?: number
}

/** Models that a sandbox may name, and caps on its calls. */
export function addModelOptions(command: Command): Command {
  const { default: concurrency } = DEFAULTS.sandboxConcurrentModelCalls
  return command
    .option('--model <name>', 'a model that programs inside may call; may be given several times', collectWords)
    .option('--model-calls <count>', 'calls of models in all', numberWithin(DEFAULTS.sandboxModelCalls))
    .option('--model-tokens <count>', 'their tokens in all', numberWithin(DEFAULTS.sandboxModelTokens))
    .option('--model-dollars <amount>', 'their dollars in all', numberWithin(DEFAULTS.sandboxModelDollars))
    .option(
      '--model-concurrency <count>',
      `calls of models at once (default: ${concurrency})`,
      numberWithin(DEFAULTS.sandboxConcurrentModelCalls),
    )
}

/** Throws for caps without a model: a sandbox whose template names models has their caps from there. */
export function assertHasModel(options: ModelOptions): void {
  const cap = CAPS.find(([, name]) => options[name] !== undefined)
  if (cap === undefined || (options.model ?? []).length > 0) return
  throw new UsageError(
    `${cap[0]} caps calls of models, and no model is named.`,
    'Name one with --model NAME, such as --model airlock/demo; all of them: airlock llm models',
  )
}

const CAPS = [
  ['--model-calls', 'modelCalls'],
  ['--model-tokens', 'modelTokens'],
  ['--model-dollars', 'modelDollars'],
  ['--model-concurrency', 'modelConcurrency'],
] as const

/** Caps that were given. */
export function toModelLimits(options: ModelOptions): SomeModelLimits {
  const { modelCalls, modelTokens, modelDollars, modelConcurrency } = options
  return {
    ...(modelCalls === undefined ? {} : { calls: modelCalls }),
    ...(modelTokens === undefined ? {} : { tokens: modelTokens }),
    ...(modelDollars === undefined ? {} : { dollars: modelDollars }),
    ...(modelConcurrency === undefined ? {} : { concurrentCalls: modelConcurrency }),
  }
}
