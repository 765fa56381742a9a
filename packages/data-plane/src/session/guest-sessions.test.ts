import { BOUNDS, type NodeStepSpec } from '@airlock/contract'
import { FrameDecoder, STREAM } from '@airlock/contract/guest'
import { newId } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { GroupUsage } from './spool.ts'
import { RealGuest } from './testing/real-guest.ts'

const isRoot = process.getuid?.() === 0
const failure = async (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )

describe.skipIf(!isRoot)('sessions of a real guest', () => {
  let guest: RealGuest
  beforeAll(async () => {
    guest = await RealGuest.start()
  })
  afterAll(async () => {
    await guest.stop()
  })

  const spec = (code: string): NodeStepSpec => ({
    id: newId('stp'),
    code,
    env: {},
    stdin: '',
    timeoutMs: 60_000,
    maxOutputBytes: 1000,
  })
  const open = async (): Promise<string> => {
    const id = newId('ses')
    await guest.link.sessions.open({ id, runtime: 'bash', cwd: guest.work, env: {} })
    return id
  }
  const said = async (id: string, stream: number): Promise<string> => {
    const decoder = new FrameDecoder()
    let text = ''
    for await (const chunk of guest.link.commands.output(id, { from: 0 }))
      for (const frame of decoder.push(chunk))
        if (frame.kind === 'data' && frame.stream === stream) text += frame.bytes.toString()
    return text
  }
  const run = async (session: string, code: string): Promise<string> => {
    const { id } = await guest.link.sessions.step(session, spec(code))
    return said(id, STREAM.stdout)
  }

  it('remember, are known again when opened again, and are listed', async () => {
    const id = await open()
    await run(id, 'x=7')
    expect(await guest.link.sessions.open({ id, runtime: 'bash', cwd: guest.work, env: {} })).toMatchObject({ id })
    expect(await run(id, 'echo $x')).toBe('7\n')
    expect((await guest.link.sessions.list()).map((session) => session.id)).toContain(id)
    await guest.link.sessions.close(id)
    await guest.link.sessions.close(id)
    expect((await guest.link.sessions.list()).map((session) => session.id)).not.toContain(id)
    expect(await failure(guest.link.sessions.step(id, spec(':')))).toMatchObject({ code: 'session_not_found' })
  })

  it('outlive the host process, and so does the step that runs: it is followed to its own end', async () => {
    const session = await open()
    const step = spec('x=8; echo before; sleep 1; echo after')
    await guest.link.sessions.step(session, step)
    await guest.restartLink()
    expect(await said(step.id, STREAM.stdout)).toBe('before\nafter\n')
    expect(await guest.link.commands.wait(step.id)).toMatchObject({ state: 'exited', exitCode: 0, restarted: false })
    // The same id is answered and not run again.
    expect(await guest.link.sessions.step(session, step)).toMatchObject({ state: 'exited' })
    expect(await run(session, 'echo $x')).toBe('8\n')
    await guest.link.sessions.close(session)
  })

  it('say why a step failed on its own stream, which no command may use', async () => {
    const session = await open()
    const { id } = await guest.link.sessions.step(session, spec('false'))
    expect(await guest.link.commands.wait(id)).toMatchObject({ exitCode: 1 })
    expect(JSON.parse(await said(id, STREAM.rich))).toMatchObject({ kind: 'error' })
    await guest.link.sessions.close(session)
  })

  it('count the time and the use of a step from its turn on', async () => {
    let cpuMs = 0
    const usageOf = async (): Promise<GroupUsage> => ({ cpuMs: (cpuMs += 10), memoryPeakBytes: 5, isWhole: true })
    await guest.link.close()
    guest.link = guest.newLink({ usageOf })
    await guest.link.listen()
    const session = await open()
    const [first, second] = [spec('sleep 0.3'), spec('true')]
    await guest.link.sessions.step(session, first)
    await guest.link.sessions.step(session, second)
    const [one, two] = [await guest.link.commands.wait(first.id), await guest.link.commands.wait(second.id)]
    expect(two.startedAt).toBeGreaterThanOrEqual(one.endedAt ?? Infinity)
    expect([one.usage, two.usage]).toEqual([
      { cpuMs: 10, memoryPeakBytes: 5 },
      { cpuMs: 10, memoryPeakBytes: 5 },
    ])
    // A command at the same time cannot be told apart where only the whole is counted.
    const third = spec('sleep 0.3')
    await guest.link.sessions.step(session, third)
    await guest.sh('true')
    expect((await guest.link.commands.wait(third.id)).usage).toBeNull()
    await guest.link.sessions.close(session)
  })

  it('let only so many steps wait', async () => {
    const session = await open()
    await guest.link.sessions.step(session, spec('sleep 30'))
    for (let n = 0; n < BOUNDS.waitingSteps; n++) await guest.link.sessions.step(session, spec(':'))
    expect(await failure(guest.link.sessions.step(session, spec(':')))).toMatchObject({ code: 'too_many_steps' })
    await guest.link.sessions.close(session)
  })
})
