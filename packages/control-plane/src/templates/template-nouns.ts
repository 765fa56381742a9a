import type { NodeImage, NodeImageBuild, NodeImages, Template } from '@airlock/contract'
import { findShipped, sourceOf, type TemplateFacts } from './template-facts.ts'

/** A template as its caller sees it, with what this node has of it. */
export function toTemplate(template: TemplateFacts & { readonly createdAt?: number }, node: NodeImages): Template {
  const source = sourceOf(template)
  const image = node.images.find((one) => isOf(one, template, source))
  const build = image ? undefined : node.builds.find((one) => source === 'packages' && isSame(one, template))
  return {
    name: template.name,
    shipped: findShipped(template.name) !== undefined,
    state: image ? 'ready' : (build?.state ?? 'absent'),
    source,
    ...madeOf(source === 'host' ? undefined : image),
    image: image?.name ?? null,
    ...template.spec,
    error: build?.error ?? null,
    createdAt: toTime(template.createdAt ?? 0),
  }
}

/** What belongs to the host was not built, and costs nothing. */
function madeOf(image: NodeImage | undefined): Pick<Template, 'bytes' | 'builtAt'> {
  return image ? { bytes: image.bytes, builtAt: toTime(image.builtAt) } : { bytes: null, builtAt: null }
}

function toTime(epochMs: number): string {
  return new Date(epochMs).toISOString()
}

function isOf(image: NodeImage, template: TemplateFacts, source: Template['source']): boolean {
  if (image.source !== source) return false
  if (source === 'imported') return image.name === template.image
  return source === 'host' || isSame(image, template)
}

/** Both lists are sorted. */
function isSame({ packages }: NodeImage | NodeImageBuild, { spec }: TemplateFacts): boolean {
  return packages.join(' ') === spec.packages.join(' ')
}
