import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'
import { runPythonTests } from '../support/python.ts'
import { requires } from '../support/requires.ts'

// What the client in Python does with a fake of the server is in packages/sdk/src/python.test.ts.
describe('the client in Python', requires('python3'), () => {
  let server: BorrowedServer
  beforeAll(async () => {
    server = await borrowServer()
  })
  afterAll(async () => server?.giveBack())

  it('runs commands, sessions, files, approvals and kills on a real server', async () => {
    const { code, said } = await runPythonTests('real_server.py', server)
    expect(said).toMatch(/^Ran [1-9]\d* tests? [^]*\nOK$/m)
    expect(code).toBe(0)
  })
})
