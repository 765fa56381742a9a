import { describe, expect, it } from 'vitest'
import { readHeaders } from './read-headers.ts'

const json = { 'content-type': 'application/json' }

describe('headers of a call', () => {
  it('give a version to Anthropic alone', () => {
    const headers = { ...json, 'anthropic-version': '2026-10-21', 'anthropic-beta': 'a' }
    expect(readHeaders(headers, 'anthropic')).toEqual({ version: '2026-10-21' })
    expect(readHeaders(headers, 'openai')).toEqual({ version: '2023-06-01' })
  })

  it.each(['application/json', 'Application/JSON; charset=UTF-8', 'application/json;charset="utf-8"'])(
    'may say %s',
    (type) => {
      expect(readHeaders({ 'content-type': type }, 'openai')).toEqual({ version: '2023-06-01' })
    },
  )

  it.each([
    [{}, 'The body is not application/json.'],
    [{ 'content-type': 'text/plain' }, 'The body is not application/json.'],
    [{ 'content-type': 'application/json; charset=utf-16' }, 'The body is not application/json.'],
    [{ 'content-type': 'application/json, text/plain' }, 'The body is not application/json.'],
    [{ 'content-type': 'multipart/form-data; boundary=application/json' }, 'The body is not application/json.'],
    [{ ...json, 'content-encoding': 'gzip' }, 'The body is encoded.'],
    [{ ...json, 'content-encoding': ['identity', 'gzip'] }, 'The body is encoded.'],
  ])('of another type are refused: %j', (headers, message) => {
    expect(() => readHeaders(headers, 'openai')).toThrow(
      expect.objectContaining({ code: 'unsupported_media_type', message }),
    )
  })

  it.each(['2099-01-01', '2023-06-01, 2099-01-01'])('of version %s are refused', (version) => {
    expect(() => readHeaders({ ...json, 'anthropic-version': version }, 'anthropic')).toThrow(
      '"anthropic-version" is not one of 2023-06-01, 2026-10-21.',
    )
  })
})
