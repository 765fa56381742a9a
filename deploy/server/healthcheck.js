// Whether the server in this container is ready: node healthcheck.js <port>. Exits with 0 or 1.
import { get as getPlain } from 'node:http'
import { get as getTls } from 'node:https'
import { argv, exit } from 'node:process'

const LIMIT_MS = 8_000

// It speaks either with TLS or without. Its certificate is for others: this is its own address.
const target = { host: '127.0.0.1', port: Number(argv[2]), path: '/readyz', timeout: LIMIT_MS }
const ready = await Promise.all([isReady(getPlain, target), isReady(getTls, { ...target, rejectUnauthorized: false })])
exit(ready.includes(true) ? 0 : 1)

async function isReady(get, options) {
  return new Promise((resolve) => {
    const request = get(options, (response) => resolve(response.statusCode === 200))
    request.once('timeout', () => request.destroy())
    request.once('error', () => resolve(false))
    request.once('close', () => resolve(false))
  })
}
