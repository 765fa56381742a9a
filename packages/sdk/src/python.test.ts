import { readdirSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KEYS, startTestApi, type TestApi } from '../../control-plane/src/api/testing/test-api.ts'
import { PYTHON, runPythonTests } from '../../../test/support/python.ts'
import { requires } from '../../../test/support/requires.ts'

const FILES = readdirSync(`${PYTHON}/tests`).filter((name) => name.startsWith('test_'))

// The client in Python lives beside the packages; its tests ask the same server as those of this client.
describe('the client in Python', requires('python3'), () => {
  let api: TestApi
  beforeAll(async () => {
    api = await startTestApi()
  })
  afterAll(async () => api.close())

  it.concurrent.each(FILES)('passes %s', async (file) => {
    const keys = { developerKey: KEYS.developer, adminKey: KEYS.admin }
    const { code, said } = await runPythonTests(file, { url: api.url, ...keys })
    expect(said).toMatch(/^Ran [1-9]\d* tests? [^]*\nOK$/m)
    expect(code).toBe(0)
  })
})
