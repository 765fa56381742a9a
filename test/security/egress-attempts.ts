import { clientHello, record } from '../../packages/doors/src/egress/testing/hello.ts'

/** Listeners of the host. Each is `{name}` in the bytes of an attempt. */
export const PORTS = ['http', 'tls', 'retry', 'mail'] as const
export type Ports = Readonly<Record<(typeof PORTS)[number], number>>

/** Bytes of one connection to the door; `start` follows once a tunnel is promised. */
interface Exchange {
  readonly bytes: string | Buffer
  readonly start?: Buffer
}

/** What a program inside sends to the door, with a control: the same to where a rule leads, which arrives. */
export interface Attempt extends Exchange {
  readonly name: string
  readonly group: 'tunnel' | 'request' | 'framing' | 'tls'
  readonly control: Exchange
}

/** In no byte that an upstream may receive. */
export const MARKER = 'smuggled'

const HOSTS = [
  '127.0.0.1',
  '127.1',
  '2130706433',
  '0x7f.0.0.1',
  '0x7f000001',
  '0177.0.0.1',
  '0',
  '0.0.0.0',
  '127.0.0.1.',
  '[::1]',
  '[::]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[0:0:0:0:0:0:0:1]',
  '[64:ff9b::7f00:1]',
  '[2002:7f00:1::]',
  '169.254.169.254',
  '2852039166',
  '0xa9fea9fe',
  '0251.0376.0251.0376',
  '[::ffff:169.254.169.254]',
  '[fd00:ec2::254]',
  '10.0.0.1',
  '192.168.0.1',
  '172.16.0.1',
  '100.64.0.1',
  '8.8.8.8',
  '[fe80::1]',
  '[fe80::1%lo]',
  'localhost',
  'localhost.',
  'a.localhost',
  'denied.example',
  'DENIED.example',
  'denied.example.',
  'evilallowed.example',
  'allowed.example.denied.example',
  'sub.allowed.example',
  'allowed.exampl',
  'allowed.example..',
  '.allowed.example',
  'allowed..example',
  'allowed.example\0.denied.example',
  'denied.example\0.allowed.example',
  'allowed.example@denied.example',
  'denied.example#allowed.example',
  'denied.example/allowed.example',
  '*.example',
  'allowed.example%00',
  'allowed。example',
  '\u0430llowed.example',
  'xn--llowed-2ve.example',
  'allowed.example:80',
  `${'a'.repeat(64)}.example`,
  `${'secret-as-a-label-'.repeat(3)}.denied.example`,
  `${'a.'.repeat(130)}example`,
]

const ALLOWED = 'allowed.example'
const tunnel = (to: string, head = `Host: ${to}`): Exchange => ({ bytes: `CONNECT ${to} HTTP/1.1\r\n${head}\r\n\r\n` })
const request = (line: string, head: string, body = ''): Exchange => ({
  bytes: `${line} HTTP/1.1\r\n${head}\r\nConnection: close\r\n\r\n${body}`,
})
const get = (to: string): Exchange => request(`GET http://${to}/`, `Host: ${to}`)

const WEB = `${ALLOWED}:{http}`
const TLS = `${ALLOWED}:{tls}`
const POST = [`POST http://${WEB}/`, `Host: ${WEB}`] as const
const CONTROL = { tunnel: { ...tunnel(TLS), start: clientHello({ names: [ALLOWED] }) }, request: get(WEB) } as const

const ofHosts = HOSTS.flatMap((host): readonly Attempt[] => [
  { name: `CONNECT ${shown(host)}`, group: 'tunnel', ...tunnel(`${host}:{tls}`), control: CONTROL.tunnel },
  { name: `GET ${shown(host)}`, group: 'request', ...get(`${host}:{http}`), control: CONTROL.request },
])

const SMUGGLED = `GET /${MARKER} HTTP/1.1\r\nHost: ${WEB}\r\n\r\n`

const FRAMING: readonly (readonly [string, Exchange, Exchange])[] = [
  ['CONNECT with another Host', tunnel(TLS, 'Host: denied.example:{tls}'), CONTROL.tunnel],
  ['CONNECT to another port', tunnel(`${ALLOWED}:1`), CONTROL.tunnel],
  ['CONNECT without a port', tunnel(ALLOWED), CONTROL.tunnel],
  ['CONNECT with a body', tunnel(TLS, `Host: ${TLS}\r\nTransfer-Encoding: chunked`), CONTROL.tunnel],
  ['CONNECT to a URL', tunnel(`https://${TLS}`, `Host: ${TLS}`), CONTROL.tunnel],
  ['CONNECT behind an unanswered request', { bytes: `${SMUGGLED}${String(tunnel(TLS).bytes)}` }, CONTROL.tunnel],
  ['another Host', request(`GET http://${WEB}/`, 'Host: denied.example'), CONTROL.request],
  ['another address', request('GET http://denied.example/', `Host: ${WEB}`), CONTROL.request],
  ['two Hosts', request(`GET http://${WEB}/`, `Host: ${WEB}\r\nHost: denied.example`), CONTROL.request],
  ['https in absolute form', request(`GET https://${WEB}/`, `Host: ${WEB}`), CONTROL.request],
  ['a path alone', request('GET /', `Host: ${WEB}`), CONTROL.request],
  ['a WebSocket', request(`GET http://${WEB}/`, `Host: ${WEB}\r\nUpgrade: websocket`), CONTROL.request],
  ['h2c', request(`GET http://${WEB}/`, `Host: ${WEB}\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk`), CONTROL.request],
  [
    'a length and chunks',
    request(POST[0], `${POST[1]}\r\nContent-Length: 1\r\nTransfer-Encoding: chunked`, `0\r\n\r\n${SMUGGLED}`),
    CONTROL.request,
  ],
  ['two lengths', request(POST[0], `${POST[1]}\r\nContent-Length: 0\r\nContent-Length: 9`, SMUGGLED), CONTROL.request],
  [
    'an unknown encoding',
    request(POST[0], `${POST[1]}\r\nTransfer-Encoding: xchunked`, `0\r\n\r\n${SMUGGLED}`),
    CONTROL.request,
  ],
  [
    'chunks twice',
    request(POST[0], `${POST[1]}\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked`, `0\r\n\r\n${SMUGGLED}`),
    CONTROL.request,
  ],
  [
    'a folded header',
    request(POST[0], `${POST[1]}\r\nTransfer-Encoding:\r\n chunked`, `0\r\n\r\n${SMUGGLED}`),
    CONTROL.request,
  ],
  [
    'a flood of headers',
    request(`GET http://${WEB}/`, `Host: ${WEB}\r\n${'a:\r\n'.repeat(2200)}Content-Length: 9`, SMUGGLED),
    CONTROL.request,
  ],
  [
    'a head that is too long',
    request(`GET http://${WEB}/`, `Host: ${WEB}\r\nx: ${'x'.repeat(20_000)}`),
    CONTROL.request,
  ],
  ['HTTP/1.0', { bytes: `GET http://${WEB}/ HTTP/1.0\r\nHost: ${WEB}\r\n\r\n` }, CONTROL.request],
  ['HTTP/2', { bytes: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' }, CONTROL.request],
  ['SOCKS 5', { bytes: '\u0005\u0001\u0000' }, CONTROL.request],
  [
    'SOCKS 4',
    { bytes: '\u0004\u0001\u0001\u00bb\u0000\u0000\u0000\u0001\u0000allowed.example\u0000' },
    CONTROL.request,
  ],
  ['TLS to the door itself', { bytes: clientHello() }, CONTROL.request],
]

const hello = (start: Buffer, port = 'tls'): Exchange => ({ ...tunnel(`${ALLOWED}:{${port}}`), start })
const [MINE, OTHER] = [clientHello({ names: [ALLOWED] }), clientHello({ names: [`${MARKER}.example`] })]
const ECH = clientHello({ names: [ALLOWED], extensions: [[0xfe_0d, Buffer.from(MARKER)]] })

const TLS_STARTS: readonly (readonly [string, Exchange])[] = [
  ['another name', hello(OTHER)],
  ['another name in records of one byte', hello(clientHello({ names: [`${MARKER}.example`], recordBytes: 1 }))],
  ['no name', hello(clientHello({ names: [], extensions: [[99, Buffer.from(MARKER)]] }))],
  ['two names', hello(clientHello({ names: [ALLOWED, `${MARKER}.example`] }))],
  ['an address', hello(clientHello({ names: ['127.0.0.1'], extensions: [[99, Buffer.from(MARKER)]] }))],
  [
    'a name with a dot at its end',
    hello(clientHello({ names: [`${ALLOWED}.`], extensions: [[99, Buffer.from(MARKER)]] })),
  ],
  ['a name with a NUL', hello(clientHello({ names: [`${ALLOWED}\0${MARKER}`] }))],
  ['an encrypted name', hello(ECH)],
  ['HTTP', hello(Buffer.from(`GET /${MARKER} HTTP/1.1\r\n\r\n`))],
  ['SSH', hello(Buffer.from(`SSH-2.0-${MARKER}\r\n`))],
  ['HTTP/2 without TLS', hello(Buffer.from(`PRI * HTTP/2.0\r\n\r\n${MARKER}`))],
  ['SSL 2', hello(Buffer.concat([Buffer.from([0x80, 0x2e, 1, 0, 2]), Buffer.from(MARKER)]))],
  ['a second ClientHello', hello(Buffer.concat([MINE, record(20, Buffer.from([1])), OTHER]), 'retry')],
  ['a second ClientHello in the first', hello(clientHello({ names: [ALLOWED], surplus: OTHER.subarray(5) }))],
  ['plaintext to a server that greets', hello(Buffer.concat([MINE, Buffer.from(`EHLO ${MARKER}\r\n`)]), 'mail')],
]

export const ATTEMPTS: readonly Attempt[] = [
  ...ofHosts,
  ...FRAMING.map(([name, exchange, control]) => ({ name, group: 'framing' as const, ...exchange, control })),
  ...TLS_STARTS.map(([name, exchange]) => ({
    name: `TLS: ${name}`,
    group: 'tls' as const,
    ...exchange,
    control: CONTROL.tunnel,
  })),
]

/** As `SEND_ALL` reads it: steps in base64, with the ports of this run. */
export function encode({ bytes, start }: Exchange, ports: Ports): readonly string[] {
  const all =
    typeof bytes === 'string'
      ? Buffer.from(withPorts(bytes, ports), /[\u0100-\uffff]/.test(bytes) ? 'utf8' : 'latin1')
      : bytes
  return [all, ...(start ? [start] : [])].map((step) => step.toString('base64'))
}

function withPorts(text: string, ports: Ports): string {
  return PORTS.reduce((rest, name) => rest.replaceAll(`{${name}}`, String(ports[name])), text)
}

function shown(host: string): string {
  return JSON.stringify(host).slice(1, -1).slice(0, 60)
}

/**
 * Sends each exchange of a JSON file on a connection of its own, and prints the answers as JSON: the status line, and the type
 * of the first TLS record behind a promised tunnel.
 */
export const SEND_ALL = `
import base64, json, socket, sys, time
RETRY = bytes.fromhex('cf21ad74e59a6111be1d8c021e65b891')
def read(s, enough):
    data = b''
    try:
        while not enough(data):
            more = s.recv(65536)
            if not more: break
            data += more
    except OSError as error:
        data += b' ' + str(error).encode()
    return data
def exchange(steps):
    s = socket.create_connection(('127.0.0.1', 47081), 20)
    try: s.sendall(base64.b64decode(steps[0]))
    except OSError: pass
    head = read(s, lambda data: b'\\r\\n\\r\\n' in data)
    answer = head.split(b'\\r\\n')[0].decode('latin1')
    if answer.startswith('HTTP/1.1 200') and len(steps) > 1:
        s.sendall(base64.b64decode(steps[1]))
        # Until a ServerHello or the end. A request for a second hello is not the answer to that.
        s.settimeout(20)
        data = read(s, lambda data: len(data) >= 7 and data[0] == 22 and RETRY not in data)
        alert = data.endswith(bytes([21, 3, 3, 0, 2, 2, 49]))
        answer = 'tunnel: ' + ('refused' if alert else 'open' if data[:1] == bytes([22]) else repr(data[:40]))
    s.close()
    return answer
answers = []
for steps in json.load(open(sys.argv[1])):
    answer = exchange(steps)
    for _ in range(20):
        if not answer.startswith('HTTP/1.1 429'): break
        time.sleep(0.2)
        answer = exchange(steps)
    answers.append(answer)
print(json.dumps(answers))
`

/** Everything but the door. Prints what reached something; argument: a TCP and a UDP port of the host. */
export const AROUND = `
import json, socket, sys
tcp, udp = int(sys.argv[1]), int(sys.argv[2])
reached = []
def attempt(name, act):
    try:
        act()
        reached.append(name)
    except OSError:
        pass
def dial(family, address):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.settimeout(3)
    s.connect(address)
def send(family, address):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(0.3)
    s.sendto(b'\\0\\1\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\6denied\\7example\\0\\0\\1\\0\\1', address)
    s.recv(10)
for host in ['127.0.0.1', '127.0.0.2', '10.0.0.1', '8.8.8.8', '169.254.169.254', '192.168.0.1']:
    attempt('tcp ' + host, lambda: dial(socket.AF_INET, (host, tcp)))
    attempt('udp ' + host, lambda: send(socket.AF_INET, (host, udp)))
for host in ['::1', 'fe80::1', '2001:4860:4860::8888']:
    attempt('tcp ' + host, lambda: dial(socket.AF_INET6, (host, tcp)))
    attempt('udp ' + host, lambda: send(socket.AF_INET6, (host, udp)))
attempt('abstract', lambda: dial(socket.AF_UNIX, '\\0' + sys.argv[3]))
for path in ['/run/airlock/doors.sock', '/run/airlock/data-plane.sock', '/run/airlock/control-plane-doors.sock', '/run/docker.sock']:
    attempt(path, lambda: dial(socket.AF_UNIX, path))
attempt('icmp', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
attempt('ping', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP).sendto(b'\\x08\\0\\0\\0\\0\\0\\0\\0', ('8.8.8.8', 0)))
attempt('packet', lambda: socket.socket(17, socket.SOCK_RAW))
attempt('name', lambda: socket.create_connection(('denied.example', 80), 3))
print(json.dumps(reached))
`

/** The control of `AROUND`: the same calls reach what listens inside. Prints what they reached. */
export const AROUND_CONTROL = `
import json, socket
reached = []
for family, address, kind in [(socket.AF_INET, ('127.0.0.1', 0), 'tcp'), (socket.AF_INET6, ('::1', 0), 'tcp6'), (socket.AF_UNIX, '\\0inside', 'abstract')]:
    server = socket.socket(family, socket.SOCK_STREAM)
    server.bind(address); server.listen()
    client = socket.socket(family, socket.SOCK_STREAM)
    client.connect(server.getsockname())
    reached.append(kind)
a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); a.bind(('127.0.0.1', 0))
b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); b.sendto(b'x', a.getsockname())
if a.recv(1): reached.append('udp')
print(json.dumps(reached))
`
