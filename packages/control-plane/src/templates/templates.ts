import {
  AirlockError,
  BOUNDS,
  type NodeImage,
  type Template,
  type TemplateEvent,
  type TemplateSpec,
} from '@airlock/contract'
import { findShipped, SHIPPED, sourceOf, type TemplateFacts, templateFacts } from './template-facts.ts'
import {
  countStandingOn,
  deleteTemplate,
  findTemplate,
  listAllTemplates,
  listTemplates,
  type StoredTemplate,
  writeTemplate,
} from '../store/templates.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/caller.ts'
import { type Deed, doRecorded, type Governed } from '../evidence/evidence.ts'
import { ImageBuilds } from './image-builds.ts'
import { toTemplate } from './template-nouns.ts'

/** What sandboxes start from, and the images that they need for it. */
export class Templates {
  readonly #context: Context
  readonly #builds: ImageBuilds

  constructor(context: Context) {
    this.#context = context
    this.#builds = new ImageBuilds(context)
  }

  async list({ principal }: Caller): Promise<readonly Template[]> {
    const { store, dataPlane } = this.#context
    const rows = await store.query((db) => listTemplates(db, principal.tenant))
    const node = await dataPlane.images.list()
    return [...SHIPPED, ...rows].map((template) => toTemplate(template, node))
  }

  async get({ principal }: Caller, name: string): Promise<Template> {
    const { store, dataPlane } = this.#context
    const key = { tenant: principal.tenant, name }
    const template = findShipped(name) ?? (await store.query((db) => findTemplate(db, key)))
    if (!template) throw new AirlockError('template_not_found')
    return toTemplate(template, await dataPlane.images.list())
  }

  async put(caller: Caller, name: string, spec: TemplateSpec): Promise<Template> {
    throwOnShipped(name)
    this.#context.models.namesOf(spec.models)
    const payload = {
      packages: spec.packages,
      env: Object.keys(spec.env),
      limits: given(spec.limits),
      models: spec.models,
    }
    const deed = await this.#pass(caller, { template: name, ...payload })
    await doRecorded(this.#context, deed, async () => {
      await this.#write(caller, name, (before) => {
        if (before?.source === 'imported' && spec.packages.length > 0)
          throw new AirlockError('template_invalid', 'Packages cannot be added to an image that was imported.')
        return { source: before?.source ?? 'packages', spec: canonical(spec), image: before?.image ?? null }
      })
      return { value: undefined }
    })
    return this.get(caller, name)
  }

  /** Ends with `ended` or throws. The build goes on when nobody listens any more. */
  async *build(caller: Caller, name: string): AsyncGenerator<TemplateEvent> {
    const { tenant } = caller.principal
    const facts = await this.#context.store.query((db) => templateFacts(db, { tenant, name }))
    if (facts.source === 'packages')
      for await (const event of this.#builds.events(() => this.#pass(caller, payloadOf(facts)), facts))
        if (event.event === 'progress') yield event
    yield { event: 'ended', template: await this.get(caller, name) }
  }

  async import(caller: Caller, name: string, tar: AsyncIterable<Buffer>): Promise<Template> {
    throwOnShipped(name)
    const deed = await this.#pass(caller, { template: name, source: 'imported' })
    const replaced = await doRecorded(this.#context, deed, async () => {
      await this.#write(caller, name, (before) => before)
      const { image, env } = await this.#context.dataPlane.images.import(tar)
      let old: string | null = null
      await this.#write(caller, name, (before) => {
        old = before?.image ?? null
        const spec = { ...(before?.spec ?? canonical({})), packages: [], env: { ...env, ...before?.spec.env } }
        return { source: 'imported', spec, image: image.name }
      })
      return { value: old === image.name ? null : old, payload: { image: image.name, bytes: image.bytes } }
    })
    await this.#pruneSoon(replaced === null ? [] : [replaced])
    return this.get(caller, name)
  }

  async remove(caller: Caller, name: string): Promise<void> {
    throwOnShipped(name)
    const { store, audit } = this.#context
    const key = { tenant: caller.principal.tenant, name }
    const removed = await store.transaction(async (db) => {
      const template = await findTemplate(db, key)
      if (!template) throw new AirlockError('template_not_found')
      if ((await countStandingOn(db, key)) > 0) throw new AirlockError('template_in_use')
      await deleteTemplate(db, key)
      return template
    })
    const { source, image } = removed
    audit.note({ ...deedOf(caller, 'template.remove', { template: name, source, image }), status: 'done' })
    const images = await this.#imagesOf(removed)
    await this.#pruneSoon(images)
  }

  /** The image that a sandbox of this template stands on, built first when it is not there. */
  async imageFor(caller: Caller, facts: TemplateFacts): Promise<string> {
    if (facts.source === 'host') return 'host'
    if (facts.source === 'packages')
      return (await this.#builds.ready(() => this.#pass(caller, payloadOf(facts)), facts)).name
    const { images } = await this.#context.dataPlane.images.list()
    if (facts.image !== null && images.some(({ name }) => name === facts.image)) return facts.image
    throw new AirlockError('template_failed', `The image of "${facts.name}" is not on this node.`, {
      hint: 'Import it here.',
    })
  }

  /** Tells the data plane which images somebody refers to; it removes the others. */
  async prune(dropped: readonly string[] = []): Promise<void> {
    const rows = await this.#context.store.query((db) => listAllTemplates(db))
    const packages = [...SHIPPED, ...rows].filter((template) => sourceOf(template) === 'packages')
    await this.#context.dataPlane.images.prune({
      names: rows.flatMap(({ image }) => image ?? []),
      packages: packages.map(({ spec }) => spec.packages),
      dropped: [...dropped],
    })
  }

  async #pass(caller: Caller, payload: Deed['payload']): Promise<Governed> {
    return this.#context.guardian.pass(caller, deedOf(caller, 'template.build', payload))
  }

  /** Not the caller's matter: what is left is removed with the next one. */
  async #pruneSoon(dropped: readonly string[]): Promise<void> {
    await this.prune(dropped).catch((error: unknown) => this.#context.log.warn('images were not pruned', { error }))
  }

  async #imagesOf({ image, source, spec }: StoredTemplate): Promise<readonly string[]> {
    if (image !== null) return [image]
    if (sourceOf({ source, spec }) !== 'packages') return []
    const key = spec.packages.join(' ')
    const { images } = await this.#context.dataPlane.images.list()
    return images.filter((one: NodeImage) => one.packages.join(' ') === key).map(({ name }) => name)
  }

  /** `change` gets what is there and answers what shall be; nothing when it answers undefined, but the bound is checked. */
  async #write(
    caller: Caller,
    name: string,
    change: (before: StoredTemplate | undefined) => Pick<StoredTemplate, 'source' | 'spec' | 'image'> | undefined,
  ): Promise<void> {
    const { store, clock } = this.#context
    const { tenant } = caller.principal
    await store.transaction(async (db) => {
      const before = await findTemplate(db, { tenant, name })
      if (!before && (await listTemplates(db, tenant)).length >= BOUNDS.templates)
        throw new AirlockError('too_many_templates')
      const after = change(before)
      if (after) await writeTemplate(db, { ...after, tenant, name, createdAt: before?.createdAt ?? clock.now() })
    })
  }
}

function throwOnShipped(name: string): void {
  if (findShipped(name))
    throw new AirlockError('template_invalid', `The template "${name}" is shipped and cannot be changed.`, {
      hint: 'Choose another name.',
    })
}

function canonical(spec: Partial<TemplateSpec>): TemplateSpec {
  const packages = [...new Set(spec.packages)].toSorted()
  return { env: {}, limits: {}, tier: 'standard', doors: [], models: [], modelLimits: {}, ...spec, packages }
}

function given(limits: TemplateSpec['limits']): Record<string, number | null> {
  return Object.fromEntries(
    Object.entries(limits).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}

function payloadOf({ name, spec }: TemplateFacts): Deed['payload'] {
  return { template: name, packages: spec.packages }
}

function deedOf({ principal, requestId }: Caller, point: Deed['point'], payload: Deed['payload']): Deed {
  const { tenant, actor } = principal
  return { point, tenant, actor, agent: null, sandbox: null, payload: { requestId, ...payload } }
}
