import { brokenOff, type ByteSource } from './byte-source.ts'
import { decodeName, refuse } from './member-name.ts'
import { BLOCK, broken, parseDecimal, parseHeader, parsePax, type TarHeader } from './tar-header.ts'

export type TarEntry = {
  readonly name: string
  readonly mode: number
  /** Where a link leads, as it is written. */
  readonly target: string
  readonly size: number
} & (
  | { readonly type: 'file'; readonly body: AsyncIterable<Buffer> }
  | { readonly type: 'directory' | 'symlink' | 'hardlink' }
)

const MAX_EXTENDED_BYTES = 1024 * 1024
const TYPES = { '0': 'file', '7': 'file', '1': 'hardlink', '2': 'symlink', '5': 'directory' } as const
const REFUSED: Readonly<Record<string, string>> = {
  '3': 'is a device',
  '4': 'is a device',
  '6': 'is a named pipe',
  S: 'is a sparse file',
}

/** What extended headers say about the entry that follows. */
interface Extended {
  name?: Buffer
  link?: Buffer
  size?: number
}

/**
 * The entries of a tar, one after another, with bounded memory: v7, ustar, PAX and GNU long names. A body that nobody
 * reads is skipped. Fails closed: whatever two readers might understand differently is an error.
 */
export async function* readTar(source: ByteSource): AsyncGenerator<TarEntry> {
  let extended: Extended = {}
  for (;;) {
    const block = await source.take(BLOCK)
    if (!block) throw brokenOff()
    const header = parseHeader(block)
    if (!header) return
    if ('xgLK'.includes(header.type)) {
      await readExtended(source, header, extended)
      continue
    }
    const entry = entryOf(header, extended, source)
    extended = {}
    yield entry.entry
    await entry.skip()
  }
}

async function readExtended(source: ByteSource, header: TarHeader, extended: Extended): Promise<void> {
  if (header.size > MAX_EXTENDED_BYTES) throw broken('an extended header of a size')
  const bytes = (await source.take(header.size)) ?? Buffer.alloc(0)
  await source.take(paddingOf(header.size))
  const long = bytes.at(-1) === 0 ? bytes.subarray(0, -1) : bytes
  if (header.type === 'L') setOnce(extended, 'name', long)
  else if (header.type === 'K') setOnce(extended, 'link', long)
  else takePax(parsePax(bytes), header.type === 'g', extended)
}

function takePax(records: ReadonlyMap<string, Buffer>, isGlobal: boolean, extended: Extended): void {
  if ([...records.keys()].some((key) => key.startsWith('GNU.sparse.'))) throw broken('a sparse file')
  const [name, link, size] = ['path', 'linkpath', 'size'].map((key) => records.get(key))
  if (isGlobal && (name ?? link ?? size)) throw broken('a global header about a single entry')
  if (name) setOnce(extended, 'name', name)
  if (link) setOnce(extended, 'link', link)
  if (!size) return
  if (extended.size !== undefined) throw broken('two sizes for one entry')
  extended.size = parseDecimal(size)
}

function setOnce(extended: Extended, field: 'name' | 'link', value: Buffer): void {
  if (extended[field]) throw broken('two names for one entry')
  extended[field] = value
}

function entryOf(
  header: TarHeader,
  extended: Extended,
  source: ByteSource,
): { readonly entry: TarEntry; skip(): Promise<void> } {
  const name = decodeName(extended.name ?? header.name)
  const size = extended.size ?? header.size
  const type = typeOf(name, header)
  const common = { name, mode: header.mode, target: decodeName(extended.link ?? header.link), size }
  if (type !== 'file') {
    if (size > 0) throw refuse(name, 'has a size but no content')
    return { entry: { ...common, type }, skip: async () => {} }
  }
  const body = bodyOf(source, size)
  const skip = async () => {
    for await (const _ of body);
    await source.take(paddingOf(size))
  }
  return { entry: { ...common, type, body: keepOpen(body) }, skip }
}

/** v7 has no flag for directories, only a name that ends like one. */
function typeOf(name: string, header: TarHeader): TarEntry['type'] {
  const type = Object.entries(TYPES).find(([flag]) => flag === header.type)?.[1]
  if (type === undefined) throw refuse(name, REFUSED[header.type] ?? 'is of an unknown kind')
  return type === 'file' && name.endsWith('/') ? 'directory' : type
}

async function* bodyOf(source: ByteSource, size: number): AsyncGenerator<Buffer> {
  yield* source.stream(size)
}

/** A reader that stops early leaves the rest to be skipped. */
function keepOpen(body: AsyncGenerator<Buffer>): AsyncIterable<Buffer> {
  return { [Symbol.asyncIterator]: () => ({ next: async () => body.next() }) }
}

function paddingOf(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK
}
