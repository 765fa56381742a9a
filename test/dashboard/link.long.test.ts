import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startBrowser, type TestBrowser } from '../support/browser.ts'
import { requires } from '../support/requires.ts'
import { makeHome, removeHome } from '../support/server.ts'

const PROGRAM = fileURLToPath(new URL('../../packages/cli/bin/airlock.js', import.meta.url))
const READY_MS = 120_000

describe('the link of a server in a terminal', requires('root', 'crun', 'python3', 'chromium'), () => {
  let browser: TestBrowser
  beforeAll(async () => {
    browser = await startBrowser()
  })
  afterAll(async () => browser?.close())

  it('signs in once as the admin of the machine, and leaves nothing in the history', async () => {
    const home = makeHome()
    // `script` gives it a terminal.
    const words = ['-qefc', `exec '${process.execPath}' '${PROGRAM}' serve`, '/dev/null']
    const env = { PATH: process.env['PATH'] ?? '', HOME: '/root', AIRLOCK_HOME: home, AIRLOCK_PORT: '0' }
    const server = spawn('script', words, { env, stdio: ['pipe', 'pipe', 'inherit'] })
    const ended = new Promise((resolve) => server.once('exit', resolve))
    let printed = ''
    server.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    const link = await waitFor(() => /http:\S+#\/sign-in\/[\w-]{43}/.exec(printed)?.[0], {
      signal: deadline(READY_MS),
      everyMs: 100,
    })
    const page = await browser.open(link)
    await page.getByText('admin', { exact: true }).waitFor()
    expect(page.url()).not.toContain('sign-in')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.goto('about:blank')
    await page.goto(link)
    await page.getByText('The link was used before').waitFor()
    server.stdin.write('\u0003')
    await ended
    await removeHome(home, 'remove')
    expect(browser.faults).toEqual([])
  })
})
