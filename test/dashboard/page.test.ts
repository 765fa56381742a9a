import { Airlock } from '@airlock/sdk'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type BorrowedServer, borrowServer } from '../support/borrow-server.ts'
import { signIn, startBrowser, type TestBrowser } from '../support/browser.ts'
import { requires } from '../support/requires.ts'

describe('the page', requires('root', 'crun', 'python3', 'chromium'), () => {
  let server: BorrowedServer
  let browser: TestBrowser
  let admin: Airlock
  let developer: Airlock
  let page: Page
  beforeAll(async () => {
    server = await borrowServer()
    browser = await startBrowser()
    admin = new Airlock({ url: server.url, apiKey: server.adminKey })
    developer = new Airlock({ url: server.url, apiKey: server.developerKey })
  })
  afterAll(async () => {
    await browser?.close()
    await server?.giveBack()
  })
  afterEach(async () => {
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('API key').waitFor()
    await page.close()
    expect(browser.faults).toEqual([])
  })

  const go = async (name: string): Promise<void> => page.getByRole('navigation').getByRole('link', { name }).click()

  it('lists sandboxes as they come, runs a line in one, and shows its output and its end', async () => {
    page = await browser.open(server.url)
    await signIn(page, server.developerKey)
    await go('Sandboxes')
    const sandbox = await developer.sandboxes.create({ name: 'looked-at', labels: { team: 'page' } })
    await page.getByRole('link', { name: 'looked-at' }).click()
    const line = page.getByLabel('A line for the shell')
    await line.fill("python3 -c 'print(6*7)'; echo bad >&2; exit 3")
    await line.press('Enter')
    const output = page.getByRole('log', { name: 'Output' })
    await output.getByText('42').waitFor()
    expect(await output.innerText()).toBe('42\nbad\n')
    await page.locator('.state', { hasText: 'exit 3' }).waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByRole('button', { name: 'Pause' }).waitFor()
    await page.getByRole('button', { name: 'Terminate' }).click()
    await page.getByRole('button', { name: 'Terminate now' }).click()
    await page.getByRole('heading', { name: 'stopped' }).waitFor()
    expect((await sandbox.refresh()).data.endReason).toBe('terminated')
  })

  it('lets an admin approve an ask on a phone, and the same command then runs', async () => {
    page = await browser.open(server.url)
    await page.setViewportSize({ width: 390, height: 844 })
    await signIn(page, server.adminKey)
    await go('Approvals')
    const sandbox = await developer.sandboxes.create()
    const command = ['rm', '-rf', '/workspace']
    await expect(sandbox.run(command)).rejects.toMatchObject({ code: 'approval_required' })
    const ask = page.getByRole('article').filter({ hasText: 'rm -rf /workspace' })
    await ask.getByText('high risk').waitFor()
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
    await ask.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('table').getByText('approved').waitFor()
    expect((await sandbox.run(command)).durationMs).toBeGreaterThan(0)
    await sandbox.terminate()
  })

  it('kills a sandbox by a button that is held with the keyboard, and shows that it is gone', async () => {
    const sandbox = await developer.sandboxes.create({ name: 'doomed' })
    page = await browser.open(server.url)
    await signIn(page, server.adminKey)
    await go('Killswitch')
    await page.getByLabel(/^Sandbox/).selectOption(sandbox.id)
    await page.getByText('1 sandbox lives in this scope.').waitFor()
    const button = page.getByRole('button', { name: 'Hold to kill' })
    await button.press('Enter')
    expect((await sandbox.refresh()).data.state).toBe('active')
    await button.focus()
    await page.keyboard.down('Enter')
    const report = page.getByRole('region', { name: 'Report' })
    await report.waitFor()
    await page.keyboard.up('Enter')
    expect(await report.getByRole('row').filter({ hasText: sandbox.id }).innerText()).toMatch(/yes$/)
    expect((await sandbox.refresh()).data).toMatchObject({ state: 'stopped', endReason: 'killed' })
  })

  it('shows an auditor everything, and offers nothing that the role may not do', async () => {
    const sandbox = await developer.sandboxes.create()
    const { secret } = await admin.keys.create({ name: 'auditor', role: 'auditor' })
    page = await browser.open(server.url)
    await signIn(page, secret)
    await page.goto(`${server.url}/#/sandboxes/${sandbox.id}`)
    await page.getByText('Your role is auditor').first().waitFor()
    expect(await page.getByRole('button', { name: 'Terminate' }).isDisabled()).toBe(true)
    expect(await page.getByLabel('A line for the shell').count()).toBe(0)
    await go('Killswitch')
    await page.getByText('this needs operator or admin').waitFor()
    await go('Evidence')
    await page.getByRole('link', { name: 'sandbox.create' }).first().click()
    await page.getByRole('heading', { name: /^Record \d+$/ }).waitFor()
    await sandbox.terminate()
  })

  it('signs out whose key was revoked, at the next request', async () => {
    const { key, secret } = await admin.keys.create({ name: 'short', role: 'developer' })
    page = await browser.open(server.url)
    await signIn(page, secret)
    await admin.keys.revoke(key.id)
    // The page asks by itself now and then, so it may be signed out before this.
    await page.evaluate("location.hash = '#/sandboxes'")
    await page.getByLabel('API key').waitFor()
    await signIn(page, server.developerKey)
  })
})
