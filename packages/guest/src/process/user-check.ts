import { once } from 'node:events'
import type { User } from '../as-user.ts'
import { GuestFailure } from '../failure.ts'
import type { Launcher } from './launch.ts'

const LIMIT_MS = 10_000
const SAID_LENGTH = 1024
const GROUP = 'user_check'

/** Who it is, whether it could signal us, and which rights it has left. */
const QUESTION =
  'id -u; id -g; kill -0 "$0" 2>/dev/null && echo yes || echo no; sed -n "s/^CapEff:[[:space:]]*//p" /proc/self/status'

/**
 * Starts a process the way user code is started, and throws unless it is another user without rights. Settings are not
 * believed: what a container may do depends on who started it.
 */
export async function throwUnlessUserIsOther(launcher: Launcher, user: User): Promise<void> {
  if (user.uid === 0 || user.gid === 0 || user.uid === process.getuid?.())
    throw new GuestFailure('permission_denied', 'user code must have a uid and a gid of its own, which are not 0')
  const said = await ask(launcher)
  const [uid, gid, maySignal, rights] = said.trim().split('\n')
  const isOther =
    uid === String(user.uid) && gid === String(user.gid) && maySignal === 'no' && /^0+$/.test(rights ?? '')
  if (!isOther)
    throw new GuestFailure(
      'permission_denied',
      `cannot run user code as ${user.uid}:${user.gid}: the agent needs root with SETUID, SETGID, SETPCAP and KILL (${JSON.stringify(said)})`,
    )
}

async function ask(launcher: Launcher): Promise<string> {
  launcher.groups.make(GROUP)
  try {
    const argv = [...launcher.programs.sh, '-c', QUESTION, String(process.pid)]
    const child = launcher.launch({
      group: GROUP,
      argv,
      cwd: '/',
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let said = ''
    const hear = (text: string) => (said = (said + text).slice(0, SAID_LENGTH))
    child.stdout?.setEncoding('utf8').on('data', hear)
    child.stderr?.setEncoding('utf8').on('data', hear)
    const limit = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS)
    await once(child, 'close')
    clearTimeout(limit)
    return said
  } finally {
    launcher.groups.release(GROUP)
  }
}
