import { describe, expect, it } from 'vitest'
import { findRoute, protocolOf } from './find-route.ts'

const find = (method: string, target: string, headers = {}) => findRoute({ method, target, headers })
const VERSION = { 'anthropic-version': '2023-06-01' }

describe('the list of routes', () => {
  it.each([
    ['POST', '/v1/chat/completions', { name: 'chat', protocol: 'openai' }],
    ['POST', '/v1/responses', { name: 'responses', protocol: 'openai' }],
    ['POST', '/v1/embeddings', { name: 'embeddings', protocol: 'openai' }],
    ['POST', '/v1/messages', { name: 'messages', protocol: 'anthropic' }],
    ['POST', '/v1/messages?beta=true', { name: 'messages', protocol: 'anthropic' }],
    ['POST', '/v1/messages/count_tokens', { name: 'countTokens', protocol: 'anthropic' }],
    ['GET', '/v1/models', { name: 'models', protocol: 'openai' }],
    ['GET', '/v1/models?limit=20&after_id=x', { name: 'models', protocol: 'openai' }],
    ['GET', '/v1/models/gpt-5', { name: 'model', model: 'gpt-5', protocol: 'openai' }],
    ['GET', '/v1/models/airlock%2Fdemo', { name: 'model', model: 'airlock/demo', protocol: 'openai' }],
    ['GET', '/v1/models/airlock/demo', { name: 'model', model: 'airlock/demo', protocol: 'openai' }],
    ['GET', '/health', { name: 'health', protocol: 'openai' }],
  ])('has %s %s', (method, target, route) => {
    expect(find(method, target)).toEqual(route)
  })

  it('gives models in the shape of the client that asks', () => {
    expect(find('GET', '/v1/models', VERSION)).toEqual({ name: 'models', protocol: 'anthropic' })
  })

  it.each([
    ['GET', '/v1/chat/completions'],
    ['DELETE', '/v1/models/gpt-5'],
    ['POST', '/v1/models'],
    ['POST', '/health'],
    ['HEAD', '/health'],
    ['get', '/health'],
    ['POST', '/v1/files'],
    ['POST', '/v1/batches'],
    ['POST', '/v1/completions'],
    ['POST', '/v1/responses/resp_1/cancel'],
    ['GET', '/v1/responses/resp_1'],
    ['POST', '/v1/messages/batches'],
    ['POST', '/v1/messages/'],
    ['POST', '/v1//messages'],
    ['POST', '//v1/messages'],
    ['POST', '/V1/messages'],
    ['POST', '/v1/./messages'],
    ['POST', '/v1/x/../messages'],
    ['POST', '/v1%2Fmessages'],
    ['POST', '/v1/%6Dessages'],
    ['POST', '/v1/messages#x'],
    ['POST', '/v1/messages;x'],
    ['POST', '/v1/messages?beta=true?beta=true'],
    ['POST', '/v1/messages?model=other'],
    ['POST', '/v1/messages?beta=true&key=value'],
    ['POST', 'http://api.example.com/v1/messages'],
    ['POST', 'v1/messages'],
    ['OPTIONS', '*'],
    ['GET', '/key/generate'],
    ['GET', '/v1/models/'],
    ['GET', '/v1/models/..'],
    ['GET', '/v1/models/%2e%2e%2fkey'],
    ['GET', '/v1/models/a%2f..%2fb'],
    ['GET', '/v1/models/a%252fb'],
    ['GET', '/v1/models/%ff'],
    ['GET', '/v1/models/a%00b'],
    ['GET', `/v1/models/${'a'.repeat(257)}`],
    ['GET', ''],
  ])('does not have %s %s', (method, target) => {
    expect(find(method, target)).toBeUndefined()
  })
})

describe('the protocol of an error', () => {
  it.each([
    ['/v1/files', {}, 'openai'],
    ['/v1/files', VERSION, 'anthropic'],
    ['/v1/messages/batches', {}, 'anthropic'],
    ['/v1/messages?beta=true', {}, 'anthropic'],
    ['/v1/messagesx', {}, 'openai'],
  ])('on %s with %j is that of %s', (target, headers, protocol) => {
    expect(protocolOf({ target, headers })).toBe(protocol)
  })
})
