import { isAirlockError } from '@airlock/contract'
import { expect, it } from 'vitest'
import { parseAuthority, parseHost, showAuthority } from './host.ts'

it.each([
  ['example.com', 'example.com'],
  ['EXAMPLE.Com', 'example.com'],
  ['example.com.', 'example.com'],
  ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
  ['a_b.example', 'a_b.example'],
  ['localhost', 'localhost'],
  ['1.example', '1.example'],
  ['0x7f.example', '0x7f.example'],
  [`${'a'.repeat(63)}.example`, `${'a'.repeat(63)}.example`],
])('reads %s as the name %s', (text, name) => {
  expect(parseHost(text)).toEqual({ kind: 'name', text: name })
})

it.each([
  ['127.0.0.1', '127.0.0.1'],
  ['127.0.0.1.', '127.0.0.1'],
  ['127.1', '127.0.0.1'],
  ['2130706433', '127.0.0.1'],
  ['0x7f.0.0.1', '127.0.0.1'],
  ['0x7f000001', '127.0.0.1'],
  ['0177.0.0.1', '127.0.0.1'],
  ['0', '0.0.0.0'],
  ['0x', '0.0.0.0'],
  ['0xa9fea9fe', '169.254.169.254'],
  ['0251.0376.0251.0376', '169.254.169.254'],
  ['[::1]', '::1'],
  ['[0:0:0:0:0:0:0:1]', '::1'],
  ['[::FFFF:127.0.0.1]', '::ffff:7f00:1'],
  ['[FD00:EC2::254]', 'fd00:ec2::254'],
])('reads %s as the address %s', (text, address) => {
  expect(parseHost(text)).toEqual({ kind: 'address', text: address })
})

it.each([
  '',
  '.',
  '..',
  'example..com',
  'example.com..',
  '.example.com',
  '-a.example',
  'a-.example',
  'exa mple.com',
  'example.com\0.other.example',
  'example.com\r\nhost: other.example',
  'example.com/path',
  'example.com?q',
  'example.com#f',
  'user@example.com',
  'user:pw@example.com',
  'ex%61mple.com',
  'bücher.example',
  'ехample.com',
  'example。com',
  'example.com\u200b',
  '*.example.com',
  `${'a'.repeat(64)}.example`,
  `${'a.'.repeat(127)}example`,
  '256.256.256.256',
  '1.2.3.4.5',
  '99999999999',
  '[::1',
  '::1',
  '[fe80::1%eth0]',
  '[::ffff:127.0.0.1%x.example.com]',
  '[]',
  '[example.com]',
])('refuses %j', (text) => {
  expect(faultOf(() => parseHost(text))).toBe('invalid_request')
})

it('reads a host with its port', () => {
  expect(parseAuthority('Example.com:443')).toEqual({ host: { kind: 'name', text: 'example.com' }, port: 443 })
  expect(parseAuthority('[::1]:65535').port).toBe(65_535)
  expect(parseAuthority('example.com', 80).port).toBe(80)
  expect(showAuthority(parseAuthority('[::1]:80'))).toBe('[::1]:80')
  expect(showAuthority(parseAuthority('EXAMPLE.com.:80'))).toBe('example.com:80')
})

it.each([
  'example.com',
  'example.com:',
  'example.com:0',
  'example.com:65536',
  'example.com:443443',
  'example.com:0443',
  'example.com:+443',
  'example.com: 443',
  'example.com:4a',
  'example.com:443:80',
  'a:b@example.com:443',
  'https://example.com:443',
  '[::1]443',
  '[::1][::2]:443',
  ':443',
])('refuses %j as a host with its port', (text) => {
  expect(faultOf(() => parseAuthority(text))).toBe('invalid_request')
})

function faultOf(act: () => unknown): string | undefined {
  try {
    act()
    return undefined
  } catch (error) {
    return isAirlockError(error) ? error.code : 'other'
  }
}
