import { z } from 'zod'
import { conditions, effect, risk, tier } from './decision.ts'
import { BOUNDS } from '../defaults.ts'
import { operation } from './question.ts'
import { grantMode } from './grant.ts'
import { askingRole } from './principal.ts'
import { name, plainText } from './scalars.ts'

export const RULE_KINDS = [
  'command',
  'code',
  'file',
  'mount',
  'network',
  'model',
  'artifact',
  'tool',
  'worktree',
  'quota',
  'tier',
  'operation',
] as const
export const ruleKind = z.enum(RULE_KINDS)
export type RuleKind = z.infer<typeof ruleKind>

/** What the reader says of a command beside its words. */
export const TRAITS = [
  /** It could run something that cannot be known from the text. */
  'unreadable',
  /** It starts copies of itself without end. */
  'fork-bomb',
  /** It runs in a loop that has no end. */
  'endless-loop',
  /** Such a loop starts something beside itself every time. */
  'endless-spawn',
] as const
export const trait = z.enum(TRAITS)
export type Trait = z.infer<typeof trait>

/**
 * Names with `*`, `?` and `[…]`; in a path `*` ends at a slash, `**` does not, and `/x/**` is `/x` too. Any of a list
 * matches, unless one that begins with `!` does. What only the running shell knows is `$` in words and paths, `$@` where it
 * could be several words.
 */
const glob = plainText.min(1).max(BOUNDS.patternLength)
const globs = z.array(glob).min(1).max(BOUNDS.ruleGlobs)

/** A regular expression without groups that repeat, lookaround and references: it is read once, from left to right. */
const pattern = plainText.min(1).max(BOUNDS.patternLength)

const atLeastOne = (match: object) => Object.keys(match).length > 0

const commandMatch = z
  .strictObject({
    programs: globs.optional().describe('Its name, without directories.'),
    subcommands: globs
      .optional()
      .describe('The first word that is no flag, or the first that cannot be the value of one.'),
    flags: globs.optional().describe('One of them is given; clusters are taken apart: -rf is -r and -f.'),
    withoutFlags: globs.optional().describe('None of them is given.'),
    arguments: globs.optional().describe('One of the words after the program, as it stands.'),
    withoutArguments: globs.optional().describe('None of the words is such.'),
    paths: globs.optional().describe('One of the words as an exact path, or what is redirected into it.'),
    writes: globs.optional().describe('Where its output goes: redirects, and what tee, dd, cp and their like write.'),
    assigns: globs.optional().describe('A variable that is set for it, or exported before.'),
    runsOutputOf: globs.optional().describe('It interprets what one of these programs writes.'),
    inputFrom: globs.optional().describe('One of these programs writes into it.'),
    traits: z.array(trait).min(1).optional(),
    pattern: pattern.optional().describe('In the words, joined by one blank.'),
  })
  .refine(atLeastOne, 'must name something')

const codeMatch = z
  .strictObject({
    runtimes: globs.optional(),
    calls: globs.optional().describe('A function by its dotted name, or by the last part of it.'),
    arguments: globs.optional().describe('One of the literal strings that the call is given.'),
    paths: globs.optional().describe('The same as exact paths.'),
    within: globs.optional().describe('A function that is called among its arguments.'),
    pattern: pattern.optional().describe('In the code.'),
  })
  .refine(atLeastOne, 'must name something')

const fileAction = z.enum(['read', 'write', 'list', 'mkdir', 'move', 'remove'])
const fileMatch = z
  .strictObject({ actions: z.array(fileAction).min(1).optional(), paths: globs.optional() })
  .refine(atLeastOne, 'must name something')
const mountMatch = z
  .strictObject({
    paths: globs.optional(),
    modes: z.array(grantMode).min(1).optional(),
  })
  .refine(atLeastOne, 'must name something')
const port = z.int().min(1).max(65_535)
const networkMatch = z
  .strictObject({
    hosts: globs
      .optional()
      .describe('Without it a rule can deny and not allow. To allow an address, the address itself is named.'),
    ports: z.array(port).min(1).max(BOUNDS.ruleGlobs).optional(),
    traffic: z
      .array(z.enum(['tls', 'http', 'raw']))
      .min(1)
      .optional()
      .describe(
        'By CONNECT with TLS, in plain HTTP, by CONNECT with other bytes. raw is allowed only where it is named.',
      ),
  })
  .refine(atLeastOne, 'must name something')
const modelMatch = z.strictObject({ models: globs })
const artifactMatch = z
  .strictObject({
    actions: z
      .array(z.enum(['collect', 'upload', 'download', 'link']))
      .min(1)
      .optional(),
    names: globs.optional(),
    over: z
      .strictObject({
        bytes: z.number().min(0).optional().describe('One whose size is not known before is over.'),
        count: z.number().min(0).optional().describe('Files of one collection.'),
      })
      .refine(atLeastOne, 'must name something')
      .optional()
      .describe('One of them is more than that.'),
  })
  .refine(atLeastOne, 'must name something')
const toolMatch = z.strictObject({ tools: globs })
const worktreeMatch = z
  .strictObject({
    findings: globs
      .optional()
      .describe('Kinds of findings. A rule that allows must name all that there are, one that does not any of them.'),
    paths: globs.optional().describe('The same of their paths, below the worktree.'),
    sources: globs.optional().describe('The repository on the host.'),
    formats: z
      .array(z.enum(['branch', 'patch']))
      .min(1)
      .optional(),
  })
  .refine(atLeastOne, 'must name something')
const quotaMatch = z.strictObject({
  over: z
    .strictObject({
      cpus: z.number().min(0).optional(),
      memoryBytes: z.number().min(0).optional(),
      pids: z.number().min(0).optional(),
      diskBytes: z.number().min(0).optional(),
      inodes: z.number().min(0).optional(),
      openFiles: z.number().min(0).optional(),
      cpuSeconds: z.number().min(0).optional().describe('Of a sandbox; one without a cap is over.'),
      lifetimeMs: z.number().min(0).optional(),
      timeoutMs: z.number().min(0).optional().describe('Of a command or a step.'),
      cpuTimeMs: z.number().min(0).optional().describe('Of a command; one without a cap is over.'),
    })
    .refine(atLeastOne, 'must name something')
    .describe('One of them is more than that.'),
})
const tierMatch = z.strictObject({
  templates: globs.optional(),
  tiers: z.array(tier).min(1).optional(),
  labels: z.record(z.string(), globs).optional().describe('Each of these labels has such a value.'),
})
const operationMatch = z
  .strictObject({
    points: globs.optional(),
    actions: globs
      .optional()
      .describe(
        'What a program in a sandbox asks for by its door, or the agent program of a run, such as sandbox:agent.',
      ),
  })
  .refine(atLeastOne, 'must name something')

/** For whom and where a rule holds; everything that is named must fit. */
const when = z.strictObject({
  points: globs.optional(),
  tenants: globs.optional(),
  actors: globs.optional(),
  roles: z.array(askingRole).min(1).optional(),
  agents: globs.optional(),
  sandboxes: globs.optional(),
  ephemeral: z.boolean().optional().describe('Whether the sandbox was created for one run.'),
})

/**
 * A text is what the kind of its rule is about: a shell line, code, a path, `host:port`, a model, a tool, a point, or an action where the rule
 * names actions. A list is an argv. Anything else is an operation written out.
 */
const example = z.union([
  plainText.min(1).max(BOUNDS.exampleLength),
  z.array(plainText.max(BOUNDS.exampleLength)).min(1).max(64),
  operation,
])
export type RuleExample = z.infer<typeof example>
const examples = z.strictObject({
  match: z.array(example).max(BOUNDS.ruleExamples).default([]),
  notMatch: z.array(example).max(BOUNDS.ruleExamples).default([]),
})

const shared = {
  id: name,
  effect,
  risk,
  reason: plainText.min(1).max(BOUNDS.reasonLength),
  enabled: z.boolean().default(true),
  /** It only says how risky something is: without another match the default holds. */
  note: z.boolean().default(false),
  when: when.optional(),
  conditions: conditions.optional(),
  examples: examples.default({ match: [], notMatch: [] }),
}

export const policyRule = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('command'), match: commandMatch, ...shared }),
  z.strictObject({ kind: z.literal('code'), match: codeMatch, ...shared }),
  z.strictObject({ kind: z.literal('file'), match: fileMatch, ...shared }),
  z.strictObject({ kind: z.literal('mount'), match: mountMatch, ...shared }),
  z.strictObject({ kind: z.literal('network'), match: networkMatch, ...shared }),
  z.strictObject({ kind: z.literal('model'), match: modelMatch, ...shared }),
  z.strictObject({ kind: z.literal('artifact'), match: artifactMatch, ...shared }),
  z.strictObject({ kind: z.literal('tool'), match: toolMatch, ...shared }),
  z.strictObject({ kind: z.literal('worktree'), match: worktreeMatch, ...shared }),
  z.strictObject({ kind: z.literal('quota'), match: quotaMatch, ...shared }),
  z.strictObject({ kind: z.literal('tier'), match: tierMatch, ...shared }),
  z.strictObject({ kind: z.literal('operation'), match: operationMatch, ...shared }),
])
export type PolicyRule = z.infer<typeof policyRule>

export const policyDocument = z.strictObject({
  name,
  description: plainText.max(BOUNDS.reasonLength).optional(),
  /** What holds where no rule matches; of several documents the strictest. */
  default: effect.optional(),
  /** Rules that are switched off, as `policy/rule`, such as `builtin/privilege-escalation`. */
  off: z.array(plainText.min(3).max(128)).max(BOUNDS.policyRules).default([]),
  rules: z.array(policyRule).max(BOUNDS.policyRules),
})
export type PolicyDocument = z.infer<typeof policyDocument>
/** As a person writes it: what has a default may be absent. */
export type PolicyDocumentInput = z.input<typeof policyDocument>
