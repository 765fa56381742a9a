/** What a program inside sends to the door, each on a connection of its own. `port`: where a server of ours listens. */
export function proxyAttempts(port: number): readonly string[] {
  const hosts = [
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
  const tunnels = hosts.map((host) => `CONNECT ${host}:${port} HTTP/1.1\r\nHost: ${host}:${port}\r\n\r\n`)
  const requests = hosts.map((host) => `GET http://${host}:${port}/ HTTP/1.1\r\nHost: ${host}:${port}\r\n\r\n`)
  const to = `allowed.example:${port}`
  const odd = [
    `CONNECT ${to} HTTP/1.1\r\nHost: denied.example:${port}\r\n\r\n`,
    `CONNECT allowed.example:${port + 1} HTTP/1.1\r\nHost: allowed.example:${port + 1}\r\n\r\n`,
    `CONNECT allowed.example HTTP/1.1\r\nHost: allowed.example\r\n\r\n`,
    `CONNECT ${to} HTTP/1.1\r\nHost: ${to}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    `GET http://${to}/ HTTP/1.1\r\nHost: denied.example\r\n\r\n`,
    `GET http://denied.example/ HTTP/1.1\r\nHost: ${to}\r\n\r\n`,
    `GET https://${to}/ HTTP/1.1\r\nHost: ${to}\r\n\r\n`,
    `GET / HTTP/1.1\r\nHost: ${to}\r\n\r\n`,
    `GET http://${to}/ HTTP/1.1\r\nHost: ${to}\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n`,
    `POST http://${to}/ HTTP/1.1\r\nHost: ${to}\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    '\u0005\u0001\u0000',
    '\u0004\u0001\u0001\u00bb\u0000\u0000\u0000\u0001\u0000allowed.example\u0000',
    '\u0016\u0003\u0001\u0000\u0005\u0001\u0000\u0000\u0001\u0000',
  ]
  return [...tunnels, ...requests, ...odd]
}

/** Sends each, and prints the statuses as JSON. Reads the attempts, base64 in JSON, from its argument. */
export const SEND_ALL = `
import base64, json, socket, sys
answers = []
for text in json.load(open(sys.argv[1])):
    s = socket.create_connection(('127.0.0.1', 47081), 20)
    s.sendall(base64.b64decode(text))
    data = b''
    try:
        while b'\\r\\n' not in data:
            more = s.recv(4096)
            if not more: break
            data += more
    except OSError as error:
        data = str(error).encode()
    s.close()
    answers.append(data.split(b'\\r\\n')[0].decode('latin1'))
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
    s.settimeout(1)
    s.sendto(b'\\0\\1\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\6denied\\7example\\0\\0\\1\\0\\1', address)
    s.recv(10)
for host in ['127.0.0.1', '127.0.0.2', '10.0.0.1', '8.8.8.8', '169.254.169.254', '192.168.0.1']:
    attempt('tcp ' + host, lambda: dial(socket.AF_INET, (host, tcp)))
    attempt('udp ' + host, lambda: send(socket.AF_INET, (host, udp)))
for host in ['::1', 'fe80::1', '2001:4860:4860::8888']:
    attempt('tcp ' + host, lambda: dial(socket.AF_INET6, (host, tcp)))
    attempt('udp ' + host, lambda: send(socket.AF_INET6, (host, udp)))
attempt('icmp', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
attempt('ping', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP).sendto(b'\\x08\\0\\0\\0\\0\\0\\0\\0', ('8.8.8.8', 0)))
attempt('packet', lambda: socket.socket(17, socket.SOCK_RAW))
attempt('name', lambda: socket.create_connection(('denied.example', 80), 3))
print(json.dumps(reached))
`
