import { AirlockError, fileEntry, ROUTES, sandboxId } from '@airlock/contract'
import { z } from 'zod'
import { defineTool, text, type Tool, type ToolCall } from '../tool.ts'

/** What an answer holds of a file; larger ones stay in the sandbox, where code can read them. */
const TEXT_BYTES = 256 * 1024
const IMAGE_BYTES = 4 * 1024 * 1024

const encoding = z.enum(['utf8', 'base64'])
const { path } = ROUTES.readFile.query.shape
const listed = ROUTES.listFiles

export const FILE_TOOLS: readonly Tool[] = [
  defineTool({
    name: 'read_file',
    title: 'Read a file',
    description:
      'Read a file of a sandbox: text as text, PNG and JPEG as a picture, anything else as base64. Long ones are cut.',
    routes: ['readFile'],
    input: z.strictObject({ sandbox: sandboxId, path }),
    output: z.object({
      path: z.string(),
      encoding: encoding.describe('How content is written.'),
      content: z.string().describe('Empty for a picture, which is in the content blocks.'),
      bytes: z.int().describe('How much of the file was read.'),
      cut: z.boolean().describe('The file is longer.'),
    }),
    hints: { readOnly: true, idempotent: true },
    run: async ({ sandbox, path: at }, call) => {
      const file = await readSome({ sandbox, path: at }, call)
      const image = imageType(file.bytes)
      const facts = { path: at, bytes: file.bytes.length, cut: file.cut }
      if (image !== undefined && !file.cut)
        return {
          structured: { ...facts, encoding: 'base64' as const, content: '' },
          content: [{ type: 'image' as const, data: file.bytes.toString('base64'), mimeType: image }],
        }
      const shown = { ...facts, ...written(file.bytes, file.cut) }
      const note = file.cut ? [text(`[cut: only the first ${shown.bytes} bytes are shown]`)] : []
      return { structured: shown, content: [text(shown.content), ...note] }
    },
  }),
  defineTool({
    name: 'write_file',
    title: 'Write a file',
    description: 'Write a file in a sandbox: content replaces what it held, or is appended.',
    routes: ['writeFile'],
    input: z.strictObject({
      sandbox: sandboxId,
      path,
      content: z.string(),
      encoding: encoding.default('utf8').describe('How content is written here.'),
      append: z.boolean().default(false),
    }),
    output: z.object(ROUTES.writeFile.response.shape),
    hints: { destructive: true },
    run: async ({ sandbox, path: at, content, encoding: how, append }, { routes, signal }) => {
      if (how === 'base64' && !/^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(content))
        throw new AirlockError('invalid_request', 'content: is not base64')
      const query = { path: at, append: append ? ('true' as const) : ('false' as const) }
      const request = { params: { id: sandbox }, query, bytes: Buffer.from(content, how) }
      return { structured: await routes.call('writeFile', request, signal) }
    },
  }),
  defineTool({
    name: 'list_files',
    title: 'List a directory',
    description: 'List a directory of a sandbox.',
    routes: ['listFiles'],
    input: z.strictObject({
      sandbox: sandboxId,
      path: path.default('/workspace'),
      limit: listed.query.shape.limit,
    }),
    output: z.object({
      entries: z.array(z.object(fileEntry.shape)),
      truncated: listed.response.shape.truncated,
    }),
    hints: { readOnly: true, idempotent: true },
    run: async ({ sandbox, ...query }, { routes, signal }) => ({
      structured: await routes.call('listFiles', { params: { id: sandbox }, query }, signal),
    }),
  }),
]

/** The beginning of a file, no more than can be shown. */
async function readSome(
  file: { readonly sandbox: string; readonly path: string },
  { routes, signal }: ToolCall,
): Promise<{ readonly bytes: Buffer; readonly cut: boolean }> {
  const reading = new AbortController()
  const request = { params: { id: file.sandbox }, query: { path: file.path } }
  const chunks: Uint8Array[] = []
  let size = 0
  let limit = IMAGE_BYTES
  try {
    for await (const chunk of routes.bytes('readFile', request, AbortSignal.any([signal, reading.signal]))) {
      chunks.push(chunk)
      size += chunk.length
      if (chunks.length === 1 && imageType(Buffer.from(chunk)) === undefined) limit = TEXT_BYTES
      if (size > limit) break
    }
  } finally {
    reading.abort()
  }
  return { bytes: Buffer.concat(chunks).subarray(0, limit), cut: size > limit }
}

function imageType(bytes: Buffer): string | undefined {
  if (bytes.subarray(0, 8).toString('latin1') === '\x89PNG\r\n\x1a\n') return 'image/png'
  return bytes.subarray(0, 3).toString('latin1') === '\xff\xd8\xff' ? 'image/jpeg' : undefined
}

/** Text when it is UTF-8, but for a character that the cut went through. */
function written(
  bytes: Buffer,
  cut: boolean,
): { readonly encoding: 'utf8' | 'base64'; readonly content: string; readonly bytes: number } {
  try {
    const content = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: cut })
    if (!content.includes('\0')) return { encoding: 'utf8', content, bytes: Buffer.byteLength(content) }
  } catch {
    // Not text: it is shown as bytes.
  }
  return { encoding: 'base64', content: bytes.toString('base64'), bytes: bytes.length }
}
