import { Airlock } from '@airlock/sdk'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type BorrowedServer, borrowServer } from '../support/borrow-server.ts'
import { signIn, startBrowser, type TestBrowser } from '../support/browser.ts'
import { Breach } from '../support/breach.ts'
import { requires } from '../support/requires.ts'

/** Sets `window.fired` where it is taken for HTML. */
const HTML = '"><img src=x onerror="window.fired=1"><svg onload="window.fired=1"></svg><script>window.fired=1</script>'
/** Turns the text behind it round. */
const BIDI = 'safe\u202Etxt.exe'
const ANSI = '\u001b[31mred\u001b[0m\u001b]0;title\u0007\u001b[2J'

const hasFired = async (page: Page): Promise<boolean> => {
  // Pictures that cannot be loaded say so a moment later.
  await page.waitForTimeout(300)
  return page.evaluate('window.fired === 1')
}

describe('hostile text on the page', requires('root', 'crun', 'python3', 'chromium'), () => {
  let server: BorrowedServer
  let browser: TestBrowser
  beforeAll(async () => {
    server = await borrowServer()
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await server?.giveBack()
  })

  it('fires on a page that takes it for HTML', async () => {
    const page = await browser.open('about:blank')
    await page.setContent(`<p>${HTML}</p>`)
    expect(await hasFired(page)).toBe(true)
    await page.close()
  })

  it('is only shown: in labels, commands, output, errors, asks and evidence', async () => {
    const developer = new Airlock({ url: server.url, apiKey: server.developerKey })
    const sandbox = await developer.sandboxes.create({ labels: { html: HTML, bidi: BIDI } })
    const command = await sandbox.start(['printf', '%s\n', HTML, BIDI, ANSI])
    await command.wait()
    await expect(sandbox.run(['rm', '-rf', '/workspace', HTML, BIDI])).rejects.toMatchObject({
      code: 'approval_required',
    })
    const page = await browser.open(server.url)
    await signIn(page, server.adminKey)
    const bidi = 'safe‹U+202E›txt.exe'
    for (const [hash, shows] of [
      ['#/sandboxes', `html=${HTML}`],
      [`#/sandboxes/${sandbox.id}`, `bidi=${bidi}`],
      ['#/approvals', bidi],
      ['#/evidence', '<script>window.fired=1</script>'],
    ] as const) {
      await page.goto(`${server.url}/${hash}`)
      await page.getByText(shows).first().waitFor()
      if (await hasFired(page)) throw new Breach(`a script ran on ${hash}`)
    }
    await page.goto(`${server.url}/#/sandboxes/${sandbox.id}`)
    const output = page.getByRole('log', { name: 'Output' })
    await output.locator('.fg-1').waitFor()
    expect(await output.innerText()).toBe(`${HTML}\n${bidi}\nred‹ESC›]0;title‹U+0007›‹ESC›[2J\n`)
    expect(await output.locator('.fg-1').innerText()).toBe('red')
    expect(await output.locator('img, svg, script').count()).toBe(0)
    if (await hasFired(page)) throw new Breach('a script ran on the output')
    expect(browser.faults).toEqual([])
    await sandbox.terminate()
  })

  it('would not run even if it became HTML: the policy of the page refuses it', async () => {
    const page = await browser.open(server.url)
    const refusals = await page.evaluate(`(() => {
      const refusalOf = (work) => { try { work(); return 'taken' } catch (error) { return error.name } }
      return [
        refusalOf(() => { document.body.innerHTML = ${JSON.stringify(HTML)} }),
        refusalOf(() => document.createElement('button').setAttribute('onclick', 'window.fired=1')),
      ]
    })()`)
    expect([refusals, await hasFired(page)]).toEqual([['TypeError', 'TypeError'], false])
    await page.close()
  })
})
