import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BASH } from './bash.ts'
import { type DriverAnswer, DriverProcess } from './testing/driver-process.ts'

const KERNEL = new URL('bash', import.meta.url).pathname

describe('the driver of bash', () => {
  let driver: DriverProcess
  beforeAll(() => {
    driver = new DriverProcess(BASH, KERNEL)
  })
  afterAll(() => driver.end())

  const run = async (code: string) => await driver.run({ code })

  it('keeps variables, arrays, functions, aliases, options, the directory and the last status', async () => {
    await run(
      'x=1; declare -A map=([a]=2); greet() { echo "hi $1"; }; alias shout="echo HEY"; set -o pipefail; cd /usr',
    )
    await run('false')
    expect(await run('echo "$? $x ${map[a]} $PWD"; greet you; shout; true | false | true; echo $?')).toEqual(
      done({ stdout: '1 1 2 /usr\nhi you\nHEY\n1\n' }),
    )
    await run('set +o pipefail')
  })

  it.each([
    ['exit 3', 3],
    ['f() { for i in 1 2; do exit 4; done; }; f; echo never', 4],
    ['set -e; f() { false; echo never; }; f', 1],
    ['false', 1],
    ['echo "open', 2],
    ['for i in', 2],
    ['echo ${unset_one:?is missing}; echo never', 1],
    ['return 5; echo never', 5],
    ['(exit 6)', 6],
    ['exit 256; echo never', 0],
    ['exit -1; echo never', 255],
  ])('ends a step, and not the session: %s', async (code, status) => {
    await run('set +e; here=yes')
    const { stdout, rich } = await run(code)
    const error = { name: 'ExitStatus', message: `exit status ${status}`, traceback: '' }
    expect({ stdout, rich }).toEqual({ stdout: '', rich: status === 0 ? [] : [{ kind: 'error', error }] })
    expect(await run('set +e; echo $here')).toEqual(done({ stdout: 'yes\n' }))
  })

  it('takes nothing for a command that completed', async () => {
    await run('false')
    expect([await run(''), await run('# nothing\n\n  # more')]).toEqual([done(), done()])
  })

  it('reads documents, quotes and letters of every kind as they are', async () => {
    const code = `cat <<'END'\n$x "\\\\" 'é' 漢字\n\ttab\nEND\nprintf '%s\\n' $'a\\'b' "c\\"d"`
    expect(await run(code)).toEqual(done({ stdout: `$x "\\\\" 'é' 漢字\n\ttab\na'b\nc"d\n` }))
  })

  it('traces what the step does and nothing of ours', async () => {
    await run('set -x')
    const { stderr } = await run('echo one; set +x')
    expect(stderr).toMatch(/^\++ echo one\n\++ set \+x\n$/)
  })

  it('puts variables of a step back as they were', async () => {
    await run('export OLD=old; PLAIN=plain; unset NEW')
    const env = { OLD: 'a', PLAIN: 'b', NEW: "c'\n$(d)" }
    expect(await driver.run({ code: 'echo "$OLD $PLAIN $NEW"; printenv PLAIN', env })).toEqual(
      done({ stdout: "a b c'\n$(d)\nb\n" }),
    )
    expect(await run('echo "$OLD $PLAIN ${NEW-none}"; printenv OLD; printenv PLAIN || echo not exported')).toEqual(
      done({ stdout: 'old plain none\nold\nnot exported\n' }),
    )
  })

  it('hides its channel from programs that a step starts', async () => {
    const inside = await run('ls -l /proc/self/fd')
    expect(inside.stdout).not.toContain('socket:')
  })
})

function done(change: Partial<DriverAnswer> = {}): DriverAnswer {
  return { status: 'completed', stdout: '', stderr: '', rich: [], ...change }
}
