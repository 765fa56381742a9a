import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import { inject } from 'vitest'

/** As root, and without a word to anybody else. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

const ACTION_MS = 60_000

export interface TestBrowser {
  readonly context: BrowserContext
  /** What scripts and policies of pages complained about, but for answers that are errors. */
  readonly faults: readonly string[]
  open(url: string): Promise<Page>
  close(): Promise<void>
}

/** Debian's Chromium with an empty profile. */
export async function startBrowser(size = { width: 1280, height: 860 }): Promise<TestBrowser> {
  const profile = mkdtempSync(join(tmpdir(), `al-${inject('testRun') ?? ''}`))
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: '/usr/bin/chromium',
    headless: true,
    viewport: size,
    args: FLAGS,
  })
  context.setDefaultTimeout(ACTION_MS)
  const faults: string[] = []
  const watch = (page: Page): void => {
    page.on('pageerror', (error) => void faults.push(error.message))
    page.on('console', (message) => {
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
        faults.push(message.text())
    })
  }
  context.on('page', watch)
  return {
    context,
    faults,
    open: async (url) => {
      const page = await context.newPage()
      await page.goto(url)
      return page
    },
    close: async () => {
      await context.close()
      rmSync(profile, { recursive: true, force: true })
    },
  }
}

/** Types the key, as a person does. */
export async function signIn(page: Page, key: string): Promise<void> {
  await page.getByLabel('API key').fill(key)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('navigation').waitFor()
}
