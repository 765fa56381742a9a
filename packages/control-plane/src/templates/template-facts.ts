import { AirlockError, type TemplateSpec } from '@airlock/contract'
import { findTemplate, type TemplateKey } from '../store/templates.ts'
import type { Queries } from '../store/engine/store.ts'

/** What a new sandbox starts from: where its image comes from, and what is filled in for the caller. */
export interface TemplateFacts {
  readonly name: string
  readonly source: 'host' | 'packages' | 'imported'
  readonly spec: TemplateSpec
  /** Of an imported one. */
  readonly image: string | null
}

const PLAIN: TemplateSpec = {
  packages: [],
  env: {},
  limits: {},
  tier: 'standard',
  doors: [],
  models: [],
  modelLimits: {},
}
const DATA = ['python3-matplotlib', 'python3-numpy', 'python3-pandas', 'python3-pil', 'python3-pip']
const GIB = 1024 * 1024 * 1024

/** Templates that everybody has: they belong to nobody, and nobody can change them. */
export const SHIPPED: readonly TemplateFacts[] = [
  { name: 'base', source: 'host', spec: PLAIN, image: null },
  {
    name: 'data',
    source: 'packages',
    spec: { ...PLAIN, packages: DATA, limits: { memoryBytes: GIB } },
    image: null,
  },
]

export function findShipped(name: string): TemplateFacts | undefined {
  return SHIPPED.find((template) => template.name === name)
}

export async function templateFacts(db: Queries, key: TemplateKey): Promise<TemplateFacts> {
  const found = findShipped(key.name) ?? (await findTemplate(db, key))
  if (!found) throw new AirlockError('template_not_found')
  return { name: found.name, source: sourceOf(found), spec: found.spec, image: found.image }
}

/** Without packages there is nothing over the host. */
export function sourceOf({ source, spec }: Pick<TemplateFacts, 'source' | 'spec'>): TemplateFacts['source'] {
  return source === 'packages' && spec.packages.length === 0 ? 'host' : source
}
