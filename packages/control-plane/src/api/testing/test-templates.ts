import { AirlockError, templateSpec, type Template, type TemplateEvent, type TemplateSpec } from '@airlock/contract'

/** For tests only: the templates of `TestCore`, which are names. */
export class TestTemplates {
  readonly templates = new Map<string, Template>([
    ['base', newTemplate('base', templateSpec.parse({}), { shipped: true, state: 'ready', source: 'host' })],
    ['data', newTemplate('data', templateSpec.parse({ packages: ['python3-pandas'] }), { shipped: true })],
  ])

  get(name: string): Template {
    const found = this.templates.get(name)
    if (!found) throw new AirlockError('template_not_found')
    return found
  }

  put(name: string, spec: TemplateSpec): Template {
    return this.#set(newTemplate(name, spec, {}))
  }

  async *build(name: string): AsyncGenerator<TemplateEvent> {
    const template = this.get(name)
    if (template.state !== 'ready') {
      yield { event: 'progress', step: 'download', done: 1024, total: 2048, detail: 'python3-pandas' }
      yield { event: 'progress', step: 'unpack', done: 1, total: 1, detail: '' }
      if (template.packages.includes('no-such-package'))
        throw new AirlockError('template_failed', 'There is no package no-such-package.')
    }
    yield { event: 'ended', template: this.#set({ ...template, state: 'ready', image: `image-${name}`, bytes: 2048 }) }
  }

  async import(
    name: string,
    image: AsyncIterable<Buffer>,
  ): Promise<{ readonly template: Template; readonly tar: Buffer }> {
    const chunks: Buffer[] = []
    for await (const chunk of image) chunks.push(chunk)
    const tar = Buffer.concat(chunks)
    const made = newTemplate(name, templateSpec.parse({}), { state: 'ready', source: 'imported' })
    return { template: this.#set({ ...made, image: `image-${name}`, bytes: tar.length }), tar }
  }

  remove(name: string): void {
    if (this.get(name).shipped) throw new AirlockError('template_in_use')
    this.templates.delete(name)
  }

  #set(template: Template): Template {
    this.templates.set(template.name, template)
    return template
  }
}

function newTemplate(name: string, spec: TemplateSpec, more: Partial<Template>): Template {
  const createdAt = new Date().toISOString()
  return {
    name,
    shipped: false,
    state: 'absent',
    source: 'packages',
    image: null,
    bytes: null,
    ...spec,
    error: null,
    createdAt,
    builtAt: null,
    ...more,
  }
}
