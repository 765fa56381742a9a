import type { RuleInput } from './rule-input.ts'

/** Every other model needs a rule of its own: no default allows one. */
export const MODELS: readonly RuleInput[] = [
  {
    id: 'demo-model',
    kind: 'model',
    effect: 'allow',
    risk: 'low',
    reason: 'The demo model costs nothing and sends nothing anywhere.',
    match: { models: ['airlock/demo'] },
    examples: { match: ['airlock/demo'], notMatch: ['airlock/demo2', 'gpt-5'] },
  },
]
