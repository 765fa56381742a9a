import { toAirlockError } from '@airlock/contract'
import { dropPrivileges } from '@airlock/std'
import { unpack } from './unpack.ts'

/**
 * The unpacker, a process of its own: the archive on stdin, one line of JSON on stdout. It starts as root only to read its
 * own code, and is nobody, in the directory that it was started in, before it reads the first byte.
 */
const uid = Number(process.argv[2])
dropPrivileges({ uid, gid: uid })
if (process.getuid?.() !== uid || process.geteuid?.() !== uid) process.exit(125)
const answer = await unpack(process.stdin as AsyncIterable<Buffer>, { root: 'root', spool: 'spool' }).then(
  (unpacked) => ({ unpacked }),
  (thrown: unknown) => {
    if (isFull(thrown)) return { error: { code: 'template_failed', message: 'The disk of the node is full.' } }
    const { code, message } = toAirlockError(thrown)
    if (code === 'internal') process.stderr.write(`${String(thrown)}\n`)
    return { error: { code, message } }
  },
)
function isFull(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && (thrown.code === 'ENOSPC' || thrown.code === 'EDQUOT')
}

process.stdout.write(`${JSON.stringify(answer)}\n`, () => process.exit(0))
