import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestProject } from 'vitest/node'
import { TestPostgres } from './postgres.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Whoever asks here is told where the one PostgreSQL of this run is. */
    postgresDesk: string
  }
}

/** One PostgreSQL for all unit tests of a run, started when the first of them asks, for many runs need none. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  let started: Promise<TestPostgres> | undefined
  const desk = createServer((_, response) => {
    started ??= TestPostgres.start()
    started.then(
      ({ place }) => response.end(JSON.stringify(place)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    )
  }).listen(0, '127.0.0.1')
  await once(desk, 'listening')
  const { port } = desk.address() as AddressInfo
  project.provide('postgresDesk', `http://127.0.0.1:${port}`)
  return async () => {
    desk.close()
    // One that did not start has failed the tests that asked for it.
    await (await started?.catch(() => undefined))?.stop()
  }
}
