import { deadline, waitFor } from '@airlock/std'
import { expect, it } from 'vitest'
import { KEYS, startTestApi } from '../../../control-plane/src/api/testing/test-api.ts'
import { CliProcess } from '../testing/cli-process.ts'

it('goes on when the server does not answer, says so once, and shows what it says when it answers again', async () => {
  const api = await startTestApi()
  const { port } = new URL(api.url)
  const env = { PATH: process.env['PATH'] ?? '', AIRLOCK_URL: api.url, AIRLOCK_API_KEY: KEYS.developer }
  const running = new CliProcess(['top', '--json', '--every', '500ms'], { env })
  const until = async (isSo: () => boolean): Promise<unknown> =>
    waitFor(() => (isSo() ? true : undefined), { signal: deadline(100_000), everyMs: 20 })
  const lines = (): number => running.stdout.toString().split('\n').length - 1
  await until(() => lines() > 0)
  await api.close()
  await until(() => running.stderr.length > 0)
  const before = lines()
  const again = await startTestApi({}, Number(port))
  await until(() => lines() > before + 1)
  running.child.kill('SIGINT')
  await again.close()
  expect(await running.ended).toMatchObject({
    code: 0,
    stderr: `airlock: No Airlock server answers at ${api.url}.\n`,
  })
})
