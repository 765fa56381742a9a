import { request } from 'node:http'

export interface NodeAnswer {
  readonly status: number
  readonly json: unknown
}

/** Speaks to the data plane of a server as its control plane does: by its socket, which only that and root can open. */
export async function askDataPlane(home: string, method: string, path: string, body?: unknown): Promise<NodeAnswer> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ socketPath: `${home}/run/data-plane.sock`, method, path }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, json: JSON.parse(Buffer.concat(chunks).toString()) }),
      )
    })
    outgoing.on('error', reject)
    outgoing.end(body === undefined ? undefined : JSON.stringify(body))
  })
}
