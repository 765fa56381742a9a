import { AirlockError, envVars, isErrorCode } from '@airlock/contract'
import { spawn, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chownSync, existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'
import { HOST_ENV } from '../run-tool.ts'
import { sizeOf } from './build-packages.ts'
import { BUILDER_UID } from './confined.ts'
import { makeDirectory, makeTop } from './image.ts'
import type { Manifest } from './manifest.ts'
import type { Tools } from './program.ts'

export interface ImageImport {
  /** A new directory, ours alone; the image is `top` over `root` in it when this is done. */
  readonly dir: string
  readonly tar: AsyncIterable<Buffer>
  readonly signal: AbortSignal
  readonly tools: Pick<Tools, 'node' | 'unpacker'>
}

const LIMIT_MS = 60 * 60_000
const ANSWER_BYTES = 2 * 1024 * 1024
const SAID_BYTES = 4096

/** Namespaces without a network that end with their first process, which dies with the one that we start. */
const ALONE = ['--net', '--ipc', '--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child=KILL']
/** A shell of root stays the first process: who changes its uid no longer dies with its parent. */
const SHELL = ['/bin/sh', '-c', 'ulimit -c 0; ulimit -n 256; ulimit -t 3600; "$@"; exit $?', 'sh']
const POWERLESS = ['setpriv', '--no-new-privs', '--inh-caps=-all', '--bounding-set=-all,+setuid,+setgid', '--']

const answerSchema = z.union([
  z.strictObject({
    unpacked: z.strictObject({ env: z.array(z.string()), passwd: z.array(z.string()), group: z.array(z.string()) }),
  }),
  z.strictObject({ error: z.strictObject({ code: z.string(), message: z.string().max(1000) }) }),
])

/**
 * Unpacks what somebody sent. Its bytes are only passed on here: a process with a uid of its own and no right reads and
 * writes them. What it answers is hostile too, and is read by schemas.
 */
export async function importImage(
  request: ImageImport,
): Promise<Omit<Manifest, 'builtAt'> & { readonly env: Record<string, string> }> {
  if (!existsSync(request.tools.unpacker))
    throw new AirlockError('template_failed', 'The unpacker of images is not built.', { hint: 'npm run build' })
  const work = join(request.dir, 'work')
  for (const path of [work, join(work, 'root')]) {
    makeDirectory(path)
    chownSync(path, BUILDER_UID, BUILDER_UID)
  }
  const { answer, sha256 } = await runUnpacker(work, request)
  if ('error' in answer) throw faultOf(answer.error)
  renameSync(join(work, 'root'), join(request.dir, 'root'))
  rmSync(work, { recursive: true, force: true })
  const { env, passwd, group } = answer.unpacked
  makeTop(join(request.dir, 'top'), { passwd, group })
  const bytes = await sizeOf(join(request.dir, 'root'))
  return {
    name: `imported-${sha256.slice(0, 16)}`,
    source: 'imported',
    packages: [],
    bytes,
    base: {},
    env: parseEnv(env),
  }
}

async function runUnpacker(
  work: string,
  { tar, signal, tools }: ImageImport,
): Promise<{ readonly answer: z.infer<typeof answerSchema>; readonly sha256: string }> {
  const node = [tools.node, '--max-old-space-size=512', tools.unpacker]
  const argv = ['--pdeathsig=KILL', 'nice', '-n', '5', 'unshare', ...ALONE, ...SHELL, ...POWERLESS, ...node]
  const child = spawn('setpriv', [...argv, String(BUILDER_UID)], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: HOST_ENV,
    cwd: work,
    timeout: LIMIT_MS,
    killSignal: 'SIGKILL',
  })
  const kill = () => child.kill('SIGKILL')
  signal.addEventListener('abort', kill, { once: true })
  try {
    const hash = createHash('sha256')
    const [answered] = await Promise.all([readAnswer(child), feed(child, tar, hash)])
    signal.throwIfAborted()
    return { answer: answered, sha256: hash.digest('hex') }
  } finally {
    signal.removeEventListener('abort', kill)
    kill()
  }
}

/** An unpacker that refused stops reading; its answer says why. */
async function feed(
  child: ChildProcess,
  tar: AsyncIterable<Buffer>,
  hash: ReturnType<typeof createHash>,
): Promise<void> {
  async function* hashed(): AsyncGenerator<Buffer> {
    for await (const chunk of tar) {
      hash.update(chunk)
      yield chunk
    }
  }
  const { stdin } = child
  if (!stdin) throw new AirlockError('internal')
  let isRefused = false
  stdin.once('error', () => (isRefused = true))
  await pipeline(Readable.from(hashed(), { objectMode: false }), stdin).catch((error: unknown) => {
    if (isRefused || child.exitCode !== null) return
    child.kill('SIGKILL')
    throw error
  })
}

async function readAnswer(child: ChildProcess): Promise<z.infer<typeof answerSchema>> {
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-SAID_BYTES)))
  const chunks: Buffer[] = []
  let bytes = 0
  child.stdout?.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes <= ANSWER_BYTES) chunks.push(chunk)
  })
  await new Promise<void>((resolve, reject) => child.once('close', () => resolve()).once('error', reject))
  const text = Buffer.concat(chunks).toString('utf8')
  if (text === '')
    throw new AirlockError('template_invalid', 'The image could not be unpacked in the time and space it may take.', {
      cause: said,
    })
  const parsed = answerSchema.safeParse(JSON.parse(text))
  if (!parsed.success) throw new AirlockError('internal', undefined, { cause: parsed.error })
  return parsed.data
}

function faultOf({ code, message }: { readonly code: string; readonly message: string }): AirlockError {
  return new AirlockError(isErrorCode(code) ? code : 'internal', message)
}

/** `NAME=value` each; what is not that is left out, as is what says where our own things are. */
function parseEnv(lines: readonly string[]): Record<string, string> {
  const pairs = lines.flatMap((line) => {
    const [, name, value] = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/su.exec(line) ?? []
    return name === undefined || value === undefined || KEPT.has(name) ? [] : [[name, value] as const]
  })
  const parsed = envVars.safeParse(Object.fromEntries(pairs))
  return parsed.success ? parsed.data : {}
}

const KEPT: ReadonlySet<string> = new Set(['HOME', 'USER', 'LOGNAME', 'TMPDIR', 'SHELL'])
