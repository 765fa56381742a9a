import { sleep } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pidOf } from '../support/pid-of.ts'
import { requires } from '../support/requires.ts'
import { allow, callRecords, callTool, CLIENT, issueTool, startToolServer, type ToolServer } from './support.ts'

let world: ToolServer

beforeAll(async () => {
  world = await startToolServer()
  await world.admin.tools.put('issue', issueTool(world.origin))
  await allow(world.admin, 'issue')
}, 240_000)
afterAll(async () => world?.stop())

describe('a sandbox with the broker door', requires('root'), () => {
  it('makes 500 calls, denied ones among them, and no more, also when the control plane is killed meanwhile', async () => {
    const box = await world.developer.sandboxes.create({ doors: ['broker'] })
    const calls = await box.start(['/opt/airlock/bin/node', '-e', CALL_MANY])
    await sleep(2_000)
    process.kill(pidOf(world.server.home, 'control-plane') ?? Number.NaN, 'SIGKILL')
    const { stdout } = await calls.wait()
    // Calls that were lost with the process may have been counted.
    expect(Number(stdout)).toBeLessThanOrEqual(500)
    expect(Number(stdout)).toBeGreaterThan(450)
    expect((await callTool(box, 'issue')).err).toContain('(too_many_calls)')
    await expect.poll(async () => (await callRecords(world.admin, box.id)).at(-1)?.error?.code).toBe('too_many_calls')
  }, 240_000)
})

/** Counts denials until there is one more call than a sandbox has. */
const CALL_MANY = `${CLIENT}
(async () => {
  let denied = 0;
  let isOver = false;
  const one = async () => {
    while (!isOver) {
      const { ok, error } = await call(denied % 100 === 0 ? 'issue' : 'absent', { owner: 'acme', repo: 'x', number: 1, state: 'x' });
      if (ok || error.code === 'policy_denied') denied += 1;
      isOver ||= error?.code === 'too_many_calls' || denied > 600;
      await new Promise((done) => setTimeout(done, 60));
    }
  };
  await Promise.all([1, 2, 3, 4].map(one));
  console.log(denied); process.exit();
})()`
