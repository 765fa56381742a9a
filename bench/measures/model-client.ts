/**
 * A client of models, as text for any Node: it runs inside a sandbox and beside it. Its arguments are a path of a socket or a
 * port, then how many calls are made one after the other, and how many with 16 at once. It prints milliseconds and calls per second.
 */
export const MODEL_CLIENT = `
const { Agent, request } = require('node:http')
const [at, ones, many] = process.argv.slice(1)
const agent = new Agent({ keepAlive: true, maxSockets: 16 })
const place = at.startsWith('/') ? { socketPath: at } : { host: '127.0.0.1', port: Number(at) }
const bodyOf = (stream) => JSON.stringify({ model: 'bench', max_tokens: 1, stream, messages: [{ role: 'user', content: 'hi' }] })

const ask = (method, path, body) => new Promise((resolve, reject) => {
  const before = performance.now()
  const headers = { host: '127.0.0.1:47080', ...(body ? { 'content-type': 'application/json', 'content-length': body.length } : {}) }
  const call = request({ ...place, agent, method, path, headers }, (response) => {
    if (response.statusCode !== 200) reject(new Error(path + ' answered ' + response.statusCode))
    let first
    response.on('data', () => { first ??= performance.now() - before })
    response.on('end', () => resolve(first))
  })
  call.on('error', reject)
  call.end(body)
})
const call = (stream) => ask('POST', '/v1/chat/completions', bodyOf(stream))
const times = async (count, work) => {
  const taken = []
  for (let done = -5; done < count; done++) {
    const tookMs = await work()
    if (done >= 0) taken.push(tookMs)
  }
  return taken
}

void (async () => {
  const path = await times(Number(ones), () => ask('GET', '/health'))
  const first = await times(Number(ones), () => call(true))
  let left = Number(many)
  const worker = async () => { while (left-- > 0) await call(false) }
  const before = performance.now()
  await Promise.all(Array.from({ length: 16 }, worker))
  const rate = Number(many) / ((performance.now() - before) / 1000)
  agent.destroy()
  console.log(JSON.stringify({ path, first, rate }))
})()
`
