import { AirlockError } from '@airlock/contract'
import { z } from 'zod'
import type { Spool, Spooled } from './spool.ts'

/** What an OCI image says: its layers from the bottom up, and its environment. */
export interface OciImage {
  readonly layers: readonly Spooled[]
  readonly env: readonly string[]
}

const MAX_LAYERS = 256
const MAX_DEPTH = 3
const MAX_JSON_BYTES = 4 * 1024 * 1024
const ARCHITECTURE: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64', riscv64: 'riscv64' }

const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/u)
const descriptor = z.object({
  mediaType: z.string().optional(),
  digest,
  platform: z.object({ os: z.string(), architecture: z.string() }).optional(),
})
type Descriptor = z.infer<typeof descriptor>
const index = z.object({ manifests: z.array(descriptor).max(256) })
const manifest = z.object({ config: descriptor, layers: z.array(descriptor).max(MAX_LAYERS) })
const config = z.object({
  os: z.string().optional(),
  architecture: z.string().optional(),
  config: z.object({ Env: z.array(z.string()).nullish() }).nullish(),
})
const saved = z.array(z.object({ Config: z.string(), Layers: z.array(z.string()).max(MAX_LAYERS) }))

/** An OCI layout, or what `docker save` writes. Every blob is what its name says, or it is refused. */
export function findImage(spool: Spool): OciImage {
  const layout = spool.find('index.json')
  const image = layout ? ofLayout(spool, layout) : ofDocker(spool)
  const { os, architecture } = image.config
  const wanted = ARCHITECTURE[process.arch] ?? process.arch
  if ((os ?? 'linux') !== 'linux' || (architecture ?? wanted) !== wanted)
    throw invalid(`The image is for ${os ?? 'linux'}/${architecture ?? '?'}, this host is linux/${wanted}.`)
  return { layers: image.layers, env: image.config.config?.Env ?? [] }
}

interface Found {
  readonly layers: readonly Spooled[]
  readonly config: z.infer<typeof config>
}

function ofLayout(spool: Spool, layout: Spooled): Found {
  const chosen = choose(spool, parse(spool, layout, index).manifests, MAX_DEPTH)
  const { config: of, layers } = parse(spool, blob(spool, chosen), manifest)
  return {
    layers: layers.map((layer) => blob(spool, layer)),
    config: parse(spool, blob(spool, of), config),
  }
}

/** Of several platforms the one of this host; of several images none. */
function choose(spool: Spool, manifests: readonly Descriptor[], depth: number): Descriptor {
  const wanted = ARCHITECTURE[process.arch] ?? process.arch
  const fitting = manifests.filter(
    ({ platform }) => !platform || (platform.os === 'linux' && platform.architecture === wanted),
  )
  const different = new Map(fitting.map((one) => [one.digest, one]))
  const [only, another] = different.values()
  if (!only) throw invalid(`The archive has no image for linux/${wanted}.`)
  if (another) throw invalid('The archive has several images: export one.')
  if (only.mediaType?.includes('index') !== true && only.mediaType?.includes('manifest.list') !== true) return only
  if (depth === 0) throw invalid('The index of the image is nested too deeply.')
  return choose(spool, parse(spool, blob(spool, only), index).manifests, depth - 1)
}

function ofDocker(spool: Spool): Found {
  const list = spool.find('manifest.json')
  if (!list) throw invalid('The archive is neither an OCI layout nor what "docker save" writes.')
  const [only, another] = parse(spool, list, saved)
  if (!only || another) throw invalid('The archive must have exactly one image.')
  const named = (name: string) => {
    const found = spool.find(name)
    if (!found) throw invalid(`The archive lacks ${JSON.stringify(name.slice(0, 200))}.`)
    return found
  }
  return { layers: only.Layers.map(named), config: parse(spool, named(only.Config), config) }
}

function blob(spool: Spool, { digest: name }: Descriptor): Spooled {
  const hash = name.slice('sha256:'.length)
  const found = spool.find(`blobs/sha256/${hash}`)
  if (!found) throw invalid(`The archive lacks the blob ${name}.`)
  if (found.sha256 !== hash) throw invalid(`The blob ${name} is damaged.`)
  return found
}

function parse<T>(spool: Spool, file: Spooled, schema: z.ZodType<T>): T {
  if (file.bytes > MAX_JSON_BYTES) throw invalid('A description in the archive is too large.')
  try {
    return schema.parse(JSON.parse(spool.read(file)))
  } catch (cause) {
    throw new AirlockError('template_invalid', 'A description in the archive cannot be read.', { cause })
  }
}

function invalid(message: string): AirlockError {
  return new AirlockError('template_invalid', message)
}
