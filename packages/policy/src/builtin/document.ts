import { policyDocument, type PolicyDocument } from '@airlock/contract'
import { CODE } from './code.ts'
import { DESTRUCTION } from './destruction.ts'
import { DOWNLOADS } from './downloads.ts'
import { EXHAUSTION } from './exhaustion.ts'
import { MODELS } from './models.ts'
import { PRIVILEGE } from './privilege.ts'
import { SANDBOXES } from './sandboxes.ts'
import { SECRETS } from './secrets.ts'
import { TAMPERING } from './tampering.ts'

/** Rises whenever a rule changes: decisions name it. */
export const BUILTIN_VERSION = 3

/** What holds unless somebody switches it off: obviously destructive intent is stopped early, and everyday work goes on. */
export const BUILTIN: PolicyDocument = policyDocument.parse({
  name: 'builtin',
  description: 'The rules that come with Airlock.',
  rules: [
    ...DESTRUCTION,
    ...PRIVILEGE,
    ...DOWNLOADS,
    ...EXHAUSTION,
    ...SECRETS,
    ...TAMPERING,
    ...CODE,
    ...SANDBOXES,
    ...MODELS,
  ],
})
