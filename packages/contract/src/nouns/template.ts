import { z } from 'zod'
import { BOUNDS } from '../defaults.ts'
import { doorNames } from '../host/doors-api.ts'
import { modelNames, someModelLimits } from './sandbox-models.ts'
import { someLimits } from './sandbox.ts'
import { envVars, name, time } from './scalars.ts'

/** A Debian package name: it becomes an argument of a program on the host. */
export const packageName = z.string().regex(/^[a-z0-9][a-z0-9+.-]{1,63}$/, 'is not the name of a Debian package')

/** `absent`: it is built when it is first used. */
export const templateState = z.enum(['absent', 'building', 'ready', 'failed'])
export type TemplateState = z.infer<typeof templateState>

/** What a new sandbox starts from: an image, packages, and defaults that a caller may override within bounds. */
export const templateSpec = z.strictObject({
  packages: z
    .array(packageName)
    .max(BOUNDS.templatePackages)
    .default([])
    .describe('Debian packages over the host image, kept in a place of their own.'),
  env: envVars.default({}),
  limits: someLimits.default({}),
  tier: z.enum(['standard', 'strict']).default('standard'),
  doors: doorNames.default([]).describe('Doors of its sandboxes, beside `control`, which every sandbox has.'),
  models: modelNames.default([]).describe('Models that its sandboxes may name; naming one gives them the door `llm`.'),
  modelLimits: someModelLimits.default({}).describe('Caps on the calls of models by each of its sandboxes.'),
})
export type TemplateSpec = z.infer<typeof templateSpec>

export const template = z.strictObject({
  name,
  /** Shipped ones belong to nobody and cannot be changed. */
  shipped: z.boolean(),
  state: templateState,
  source: z.enum(['host', 'packages', 'imported']),
  /** Which image it stands on, once there is one: the name says what is in it. */
  image: z.string().nullable(),
  bytes: z.int().nullable(),
  ...templateSpec.shape,
  error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
  createdAt: time,
  builtAt: time.nullable(),
})
export type Template = z.infer<typeof template>

/** `done` of `total` in bytes or packages, where known. */
export const templateProgress = z.strictObject({
  event: z.literal('progress'),
  step: z.enum(['resolve', 'download', 'unpack', 'prepare']),
  done: z.number(),
  total: z.number().nullable(),
  detail: z.string(),
})
export type TemplateProgress = z.infer<typeof templateProgress>

/** What happens while a template is built. */
export const templateEvent = z.discriminatedUnion('event', [
  templateProgress,
  z.strictObject({ event: z.literal('ended'), template }),
  z.strictObject({
    event: z.literal('error'),
    error: z.strictObject({ code: z.string(), message: z.string(), hint: z.string() }),
  }),
])
export type TemplateEvent = z.infer<typeof templateEvent>
