import type { Broken, Verified } from '@airlock/audit/verify'
import { signedHead } from '@airlock/contract'
import { Airlock, AirlockError, stateDirectories, type SignedHead } from '@airlock/sdk'
import type { Command } from 'commander'
import { createReadStream, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import type { Context } from '../context.ts'
import { withProgress } from '../text/progress.ts'
import { sanitizeLine } from '../text/sanitize.ts'
import { withJson, type JsonOption } from '../verb.ts'

interface Options extends JsonOption {
  readonly key?: string
  readonly head?: string
}

export function addAuditVerify(audit: Command, context: Context): void {
  withJson(audit.command('verify').description('Verify the chain of evidence: an export, or that of the server.'))
    .argument('[file]', 'an export; - for stdin (default: ask the server for one)')
    .option('--key <file>', 'the public key as PEM (default: that of the server on this machine)')
    .option('--head <file>', 'a head that was kept elsewhere: shows whether the end was cut off since')
    .addHelpText('after', '\nAn export and the public key are all it takes; no server is asked then.')
    .action(async (file: string | undefined, options: Options) => {
      const verdict = await verify(context, file, options)
      context.exitCode = verdict.ok ? 0 : 1
    })
}

interface Key {
  readonly pem: string
  readonly from: string
}

async function verify(context: Context, file: string | undefined, options: Options): Promise<Verified | Broken> {
  const { terminal } = context
  const { verifyExport } = await import('@airlock/audit/verify')
  const key = await findKey(context, file, options)
  const head = options.head === undefined ? undefined : parseHead(readFileSync(options.head, 'utf8'))
  const verdict = await withProgress(
    terminal,
    () => 'Verifying',
    async () => verifyExport(linesOf(context, file), { publicKey: key.pem, head }),
  )
  if (options.json === true) await terminal.printJson({ ...verdict, key: key.from })
  else await terminal.print(describe(context, verdict, key))
  return verdict
}

function describe({ terminal }: Context, verdict: Verified | Broken, key: Key): string {
  const from = terminal.style('dim', `Public key: ${sanitizeLine(key.from)}`)
  if (verdict.ok) {
    const { tenant, records, lastSeq, heads, lastHead } = verdict
    const fact = `${records} records of ${sanitizeLine(tenant)}, up to ${lastSeq}, ${heads} signed heads, the last of ${lastHead.ts}.`
    return [`${terminal.style('green', 'The evidence verifies:')} ${fact}`, ...describeGone(verdict), from].join('\n')
  }
  const { brokenAt, line, reason } = verdict
  return `${terminal.style('red', 'The evidence is broken')} at record ${brokenAt} (line ${line}): ${sanitizeLine(reason)}.\n${from}`
}

/** What the verdict does not cover. */
function describeGone({ dropped, quarantined, head, isWhole, lastSeq }: Verified): readonly string[] {
  return [
    ...(isWhole ? [] : [`It was cut off behind the signed head of record ${lastSeq}, or made by an earlier version.`]),
    ...(dropped
      ? [
          `Retention dropped ${dropped.seq} records, of ${dropped.dropped.newest} and before; the server signed that at ${dropped.ts}.`,
        ]
      : []),
    ...quarantined.map(
      ({ seq, ts, quarantined: { to, bytes, reason, by } }) =>
        `Behind record ${seq}, ${bytes} bytes up to number ${to} were set aside by ${sanitizeLine(by)} at ${ts}: ${sanitizeLine(reason)}.`,
    ),
    ...(head === 'dropped' || head === 'quarantined'
      ? ['What the given head vouches for is gone, so it proves nothing here.']
      : []),
  ]
}

/** Never silently: whoever verifies must know whose word the key is. */
async function findKey(context: Context, file: string | undefined, options: Options): Promise<Key> {
  if (options.key !== undefined) return { pem: readFileSync(options.key, 'utf8'), from: options.key }
  for (const directory of stateDirectories()) {
    const path = join(directory, 'public', 'audit.pub')
    try {
      return { pem: readFileSync(path, 'utf8'), from: path }
    } catch {
      // Not there: the next place.
    }
  }
  if (file !== undefined)
    throw new AirlockError('invalid_request', 'There is no public key on this machine.', {
      hint: 'Give it with --key; the server has it in <state>/public/audit.pub.',
    })
  const airlock = new Airlock({ role: 'admin' })
  const { publicKey } = await airlock.audit.head()
  return { pem: publicKey, from: `${airlock.url} (the server itself)` }
}

function linesOf(context: Context, file: string | undefined): AsyncIterable<string> {
  const input =
    file === undefined
      ? Readable.from(new Airlock({ role: 'admin' }).audit.export())
      : file === '-'
        ? process.stdin
        : createReadStream(file)
  return splitLines(input)
}

/** An error of the source must not look like the end of it. */
async function* splitLines(input: NodeJS.ReadableStream): AsyncGenerator<string> {
  let failure: unknown
  input.once('error', (error: unknown) => (failure = error))
  for await (const line of createInterface({ input, crlfDelay: Infinity })) yield line
  if (failure !== undefined) throw failure
}

/** A head, or the answer of the API that holds one. */
function parseHead(text: string): SignedHead {
  const hint = 'Make one with "airlock audit head", or save what GET /v1/audit/head answers.'
  try {
    const value: unknown = JSON.parse(text)
    const head = typeof value === 'object' && value !== null && 'head' in value ? value.head : value
    const parsed = signedHead.safeParse(head)
    if (parsed.success) return parsed.data
  } catch (cause) {
    throw new AirlockError('invalid_request', 'The head is not JSON.', { cause, hint })
  }
  throw new AirlockError('invalid_request', 'The file does not hold a signed head.', { hint })
}
