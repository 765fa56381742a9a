/** An attack that no program inside can try alone, and the test that tries it. */
export interface Elsewhere {
  readonly id: string
  readonly attack: string
  /** The file, and words of the title of the test in it. */
  readonly file: string
  readonly title: string
}

export const ELSEWHERE: readonly Elsewhere[] = [
  {
    id: 'P09',
    attack: 'a runtime that leaves out the filter or a namespace: the sandbox never becomes active',
    file: 'test/security/wall.test.ts',
    title: '%s: fails closed, says what is missing, and leaves nothing',
  },
  {
    id: 'P11',
    attack: 'an image with links or its own files at /dev, /proc, /etc, and in place of our user',
    file: 'test/templates/templates.long.test.ts',
    title: 'has our user, our directories and none of its own tricks',
  },
  {
    id: 'P15',
    attack: 'orphans, double forks, children that left their session, deaf processes',
    file: 'test/security/bombs.test.ts',
    title: 'a process that ignores SIGTERM, with children that left its session',
  },
  {
    id: 'P15',
    attack: 'whatever still runs when a sandbox ends',
    file: 'packages/data-plane/src/isolation/conformance.ts',
    title: 'leaves nothing when it stops, and may be asked again',
  },
  {
    id: 'P18',
    attack: 'a strict sandbox where there is no gVisor',
    file: 'test/security/tiers.test.ts',
    title: 'the strict tier is refused, never done differently, and the standard one works',
  },
  {
    id: 'F01',
    attack: 'a granted tree that is swapped for a link between grant and mount',
    file: 'test/security/grants.test.ts',
    title: 'a link that is swapped in and out all the time shows nothing but the tree',
  },
  {
    id: 'F01',
    attack: 'set-uid files and devices on the host through a grant',
    file: 'test/security/grants.test.ts',
    title: 'makes no set-uid or set-gid file on the host, by any way there is, and no device',
  },
  {
    id: 'F05',
    attack: 'archives: climbing and absolute names, links, devices, bombs',
    file: 'packages/data-plane/src/isolation/backends/oci/images/unpack/unpack.test.ts',
    title: 'is refused for %s, and nothing is outside',
  },
  {
    id: 'F05',
    attack: 'links that are swapped while the host reads, writes, lists and deletes',
    file: 'test/security/attacks/residue.ts',
    title: 'leads no read, write, listing or delete of the host astray',
  },
  {
    id: 'F08',
    attack: 'marks that one sandbox leaves for another: files, shared memory, semaphores, queues, sockets, processes',
    file: 'test/security/attacks/residue.ts',
    title: 'leaves nothing: what it left is seen by itself',
  },
  {
    id: 'R01',
    attack: 'a fork bomb beside a neighbour that must go on answering',
    file: 'test/security/bombs.test.ts',
    title: 'a fork bomb',
  },
  {
    id: 'R02',
    attack: 'memory in tmpfs and shared memory',
    file: 'test/security/bombs.test.ts',
    title: 'a memory bomb in tmpfs and shared memory',
  },
  {
    id: 'R03',
    attack: 'the disk, by bytes and by files',
    file: 'test/security/bombs.test.ts',
    title: 'a disk filler, by bytes and by files',
  },
  {
    id: 'R03',
    attack: 'a flood of output',
    file: 'test/security/bombs.test.ts',
    title: 'a flood of output, cut off with a marker while the program goes on',
  },
  {
    id: 'R09',
    attack: 'kill -9 of every process of ours at every step of create and terminate',
    file: 'test/lifecycle/crash.test.ts',
    title: 'at %s leaves nothing behind, nothing in limbo and nothing untold',
  },
  {
    id: 'R10',
    attack: 'a pid that was given to somebody else',
    file: 'packages/supervisor/src/survivors.test.ts',
    title: 'spares a process that got the pid of one of ours',
  },
  {
    id: 'C01',
    attack: 'every route with the ids of another tenant',
    file: 'test/security/route-walk.test.ts',
    title: '%s is not found',
  },
  {
    id: 'C03',
    attack: 'permits that are forged, altered, expired, used twice',
    file: 'test/security/permits.test.ts',
    title: 'refuses one whose %s was altered after it was signed',
  },
  {
    id: 'C05',
    attack: 'an approval that is replayed, changed, or given by who asked',
    file: 'test/security/approvals.test.ts',
    title: 'is never who asked, by that key or by one that took over from it',
  },
  {
    id: 'C06',
    attack: 'command lines and patterns made to take for ever',
    file: 'packages/policy/src/shell/bounds.test.ts',
    title: 'is read: nothing is thrown, and there is an answer',
  },
  {
    id: 'C07',
    attack: 'evidence that is edited, deleted, reordered, truncated, spliced',
    file: 'packages/audit/src/verify.test.ts',
    title: 'names the record of %s',
  },
  {
    id: 'C08',
    attack: 'tools of an agent with the ids of another',
    file: 'test/mcp/tools.test.ts',
    title: "are nobody else's way to a sandbox",
  },
  {
    id: 'C09',
    attack: 'a webhook to an address inside',
    file: 'packages/control-plane/src/webhooks/queue.test.ts',
    title: 'goes to no private address, whatever was allowed when it was made',
  },
  {
    id: 'C11',
    attack: 'escape sequences in what a sandbox prints',
    file: 'packages/cli/src/cli.test.ts',
    title: 'shows escape sequences of a sandbox instead of obeying them',
  },
  {
    id: 'N01',
    attack: 'TCP, UDP, ICMP, raw and abstract sockets, and sockets of the server, past the egress door',
    file: 'test/security/egress-range.ts',
    title: 'reaches nothing past its door',
  },
  {
    id: 'N03',
    attack:
      '60 spellings of hosts at the egress door, by CONNECT and by plain HTTP; framing, SOCKS, TLS starts: no DNS question for what is denied',
    file: 'test/security/egress-range.ts',
    title: 'reaches nothing that no rule allows, and no denied name is asked of DNS',
  },
  {
    id: 'N06',
    attack: 'a length and chunks, chunked bodies of GET, thousands of headers: another request inside of one',
    file: 'packages/doors/src/egress/attacks.test.ts',
    title: 'the chunked body of %s arrives as a body',
  },
  {
    id: 'N08',
    attack: 'an allowed name that leads to an address inside',
    file: 'test/security/egress.test.ts',
    title: 'is not connected to an allowed name that leads to an address that is not public',
  },
  {
    id: 'N12',
    attack: 'a second ClientHello with another name, in the same write as the first',
    file: 'packages/doors/src/egress/attacks.test.ts',
    title: 'a second ClientHello in the same write as the first is not sent before it was read',
  },
  {
    id: 'N12',
    attack: 'plaintext behind a ClientHello, to a server that answers what it cannot read',
    file: 'packages/doors/src/egress/attacks.test.ts',
    title: 'plaintext is not sent to a server that speaks no TLS and %s',
  },
  {
    id: 'N19',
    attack: 'a ClientHello in records of one byte, to keep the doors of all sandboxes busy',
    file: 'packages/doors/src/egress/tls/client-hello.test.ts',
    title: 'of 64 KB in records of one byte is read in linear time',
  },
  {
    id: 'N19',
    attack: 'all tunnels that are allowed, half-open and slow',
    file: 'packages/doors/src/egress/attacks.test.ts',
    title: 'holds as many tunnels as are allowed, and none more, however slowly it writes',
  },
]
