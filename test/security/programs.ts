import { Airlock, type Sandbox } from '@airlock/sdk'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requires, type Requirement } from '../support/requires.ts'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'

/** Ordinary work under the filter, in both tiers. What python, bash, tar and node do alone is in `inside.test.ts`. */
interface Work {
  readonly what: string
  readonly needs: readonly Requirement[]
  readonly script: string
  readonly says: string
}

const WORK: readonly Work[] = [
  {
    what: 'python with threads, processes, locks, shared memory and a socket pair',
    needs: ['python3'],
    script: `cat >work.py <<'END'
import concurrent.futures as futures, multiprocessing as mp, socket, subprocess, tempfile, threading
from multiprocessing import shared_memory
print(sum(futures.ThreadPoolExecutor(8).map(lambda x: x * x, range(20))))
with mp.get_context('fork').Pool(3) as pool: print(sum(pool.map(abs, range(-9, 0))))
block = shared_memory.SharedMemory(create=True, size=64); block.buf[0] = 7; print(block.buf[0]); block.close(); block.unlink()
a, b = socket.socketpair(); a.send(b'hi'); print(b.recv(2).decode())
with tempfile.NamedTemporaryFile() as f: f.write(b'x' * 1000); f.flush(); print(subprocess.run(['wc', '-c', f.name], capture_output=True, text=True).stdout.split()[0])
END
python3 work.py`,
    says: '2470\n45\n7\nhi\n1000\n',
  },
  {
    what: 'node with workers, child processes, streams and a server on loopback',
    needs: ['npm'],
    script: `cat >work.mjs <<'END'
import { Worker } from 'node:worker_threads'
import { execFileSync } from 'node:child_process'
import { createServer, get } from 'node:http'
const worker = new Worker('const { parentPort } = require("node:worker_threads"); parentPort.postMessage(6 * 7)', { eval: true })
worker.on('message', (n) => {
  console.log(n, execFileSync('echo', ['child'], { encoding: 'utf8' }).trim())
  const server = createServer((_, res) => res.end('served')).listen(0, '127.0.0.1', () =>
    get({ port: server.address().port, host: '127.0.0.1' }, (res) => res.on('data', (d) => console.log(String(d))).on('end', () => server.close())))
})
END
node work.mjs`,
    says: '42 child\nserved\n',
  },
  {
    what: 'git: clone, branch, merge, log',
    needs: ['git'],
    script: `export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b main one && cd one && echo 1 >f && git add f && git commit -qm first && git checkout -qb side && echo 2 >g && git add g && git commit -qm second
git checkout -q main && git merge -q --no-ff -m merged side && cd .. && git clone -q one two && git -C two log --format=%s --no-merges | sort`,
    says: 'first\nsecond\n',
  },
  {
    what: 'gcc and make, in parallel',
    needs: ['gcc', 'make'],
    script: `printf 'int one(void) { return 1; }\\n' >one.c; printf '#include <stdio.h>\\nint one(void); int main(void) { printf("%%d\\\\n", one() + 41); }\\n' >main.c
printf 'all: one.o main.o\\n\\tgcc -o all one.o main.o\\n' >Makefile; make -s -j4 all && ./all`,
    says: '42\n',
  },
  {
    what: 'sqlite with a journal and a lock',
    needs: ['sqlite3'],
    script: `sqlite3 -bail data.db 'pragma journal_mode=wal; create table t(x); insert into t values (40), (2); select sum(x) from t;'`,
    says: 'wal\n42\n',
  },
  {
    what: 'tar with gzip, links and modes',
    needs: [],
    script: `mkdir -p t/d && echo x >t/d/a && chmod 640 t/d/a && ln -s a t/d/b && ln t/d/a t/d/c && tar czf t.tgz t && rm -r t && tar xzf t.tgz && cat t/d/b && find t -type f -perm 640 | wc -l`,
    says: 'x\n2\n',
  },
  {
    what: 'job control of bash: background, stop, go on, wait',
    needs: [],
    script: `bash -c 'set -m; sleep 0.1 & kill -STOP %1; kill -CONT %1; wait %1; echo $?; (exit 3) & wait $!; echo $?; sleep 5 & kill %2 2>/dev/null || kill $!; wait $! 2>/dev/null; echo $?' 2>/dev/null`,
    says: '0\n3\n143\n',
  },
  {
    what: 'npm install from a local tarball',
    needs: ['npm'],
    script: `mkdir -p lib app && printf '{"name":"lib","version":"1.0.0","main":"i.js"}' >lib/package.json && echo 'module.exports = 42' >lib/i.js
(cd lib && npm pack --silent >/dev/null) && printf '{"name":"app","version":"1.0.0"}' >app/package.json && cd app && npm install --silent --offline ../lib/lib-1.0.0.tgz >/dev/null && node -p 'require("lib")'`,
    says: '42\n',
  },
]

/** Each in a directory of its own of one sandbox. */
export function describePrograms(tier: 'standard' | 'strict'): void {
  describe(`under the filter of the ${tier} tier runs`, tier === 'strict' ? requires('runsc') : {}, () => {
    let server: BorrowedServer
    let sandbox: Sandbox

    beforeAll(async () => {
      server = await borrowServer()
      const airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
      sandbox = await airlock.sandboxes.create({ tier })
    })
    afterAll(async () => server?.giveBack())

    for (const { what, needs, script, says } of WORK)
      it(what, requires(...needs), async () => {
        const directory = `work-${randomUUID()}`
        await sandbox.files.mkdir(directory)
        await sandbox.files.write(`${directory}/work.sh`, script)
        const cwd = `/workspace/${directory}`
        const ran = await sandbox.run(['sh', 'work.sh'], { timeoutMs: 60_000, cwd })
        expect({ stdout: ran.stdout, exitCode: ran.exitCode }, ran.stderr).toEqual({ stdout: says, exitCode: 0 })
      })
  })
}
