import type { PolicyDocumentInput } from '@airlock/contract'

/** A rule as it is written: what has a default is absent. */
export type RuleInput = PolicyDocumentInput['rules'][number]
