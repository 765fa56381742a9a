import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { ELSEWHERE } from '../security/attacks/elsewhere.ts'
import { renderPage } from '../security/attacks/page.ts'
import { ATTACKS } from '../security/attacks/table.ts'

const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))

describe('docs/attacks.md', () => {
  it('is of the table as it is: npm run docs:attacks', () => {
    const RESULT = /\| (?:held|\*\*FAILED\*\*): [^|]*(?=\|)/gu
    const page = readFileSync(at('docs/attacks.md'), 'utf8').replaceAll(RESULT, '| not run ')
    expect(page).toBe(renderPage([]))
  })

  it('names each attack once', () => {
    expect(new Set(ATTACKS.map(({ id }) => id)).size).toBe(ATTACKS.length)
  })

  it('names tests that are there', () => {
    const missing = ELSEWHERE.filter(
      ({ file, title }) => !existsSync(at(file)) || !readFileSync(at(file), 'utf8').includes(title),
    )
    expect(missing).toEqual([])
  })
})
