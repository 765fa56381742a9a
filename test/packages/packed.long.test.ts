import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findNode20, requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { makeCertificates, packPackages, PackedProject, type Certificates } from './packed-project.ts'

/** Loopback for the kernel, another machine for the client: keys of this machine are not for it. */
const REMOTE = '127.0.0.2'
const NODES = [
  { title: 'Node 24', node: process.execPath, needs: [] },
  { title: 'Node 20', node: findNode20() ?? 'node', needs: ['node20'] },
] as const

let packed: ReturnType<typeof packPackages>
let server: TestServer
beforeAll(async () => {
  packed = packPackages()
  server = await startServer()
})
afterAll(async () => {
  await server?.stop('SIGINT')
  if (packed) rmSync(packed.directory, { recursive: true, force: true })
})

const ours = (): Record<string, string> => ({ AIRLOCK_URL: server.url, AIRLOCK_API_KEY: server.developerKey })
const admins = (): Record<string, string> => ({ AIRLOCK_URL: server.url, AIRLOCK_API_KEY: server.adminKey })
const nobodys = { AIRLOCK_URL: 'http://127.0.0.1:9', AIRLOCK_API_KEY: 'al_none' }

describe.each(NODES)('installed on $title', ({ node, needs }) => {
  describe('the packages', requires(...needs), () => {
    let project: PackedProject
    beforeAll(() => {
      project = new PackedProject(node, packed.archives)
    })
    afterAll(() => project?.remove())

    it('bring nothing with them', () => {
      expect(readdirSync(join(project.directory, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual([
        '@airlock',
      ])
      expect(readdirSync(join(project.directory, 'node_modules/@airlock')).toSorted()).toEqual(['cli', 'sdk'])
      const files = readdirSync(join(project.directory, 'node_modules/@airlock'), { recursive: true }).map(String)
      expect(files.filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts'))).toEqual([])
    })

    it('let a JavaScript program create, stream, cancel and read files', async () => {
      const { stdout, ...rest } = await project.runProgram('consumer.js', ours())
      expect(rest).toEqual({ code: 0, stderr: '' })
      expect(JSON.parse(stdout)).toEqual(SEEN)
    })

    it('let a CommonJS program in', async () => {
      project.write('consumer.cjs', COMMON_JS)
      expect(await project.runProgram('consumer.cjs', ours())).toEqual({ code: 0, stdout: 'developer\n', stderr: '' })
    })

    it('compile in strict TypeScript with both kinds of resolution, from ES modules and from CommonJS', async () => {
      const clean = { code: 0, stdout: '', stderr: '' }
      const nodenext = { module: 'nodenext', lib: ['es2022', 'esnext.disposable', 'dom'] }
      project.write('consumer-of.cts', COMMON_TS)
      const files = ['consumer.ts', 'consumer-of.cts']
      expect(await project.compile(files, { ...nodenext, outDir: 'out', rootDir: '.' })).toEqual(clean)
      const bundler = { module: 'esnext', moduleResolution: 'bundler', noEmit: true, exactOptionalPropertyTypes: true }
      expect(await project.compile(['consumer.ts'], { ...bundler, lib: ['es2022', 'dom'] })).toEqual(clean)
      const { stdout, ...rest } = await project.runProgram('out/consumer.js', ours())
      expect(rest).toEqual({ code: 0, stderr: '' })
      expect(JSON.parse(stdout)).toEqual({
        stdout: 'typed\n',
        exitCode: 0,
        pids: 64,
        size: 5,
        step: ['completed', '/tmp\n', null],
        templates: ['base', 'data'],
      })
      expect(await project.runProgram('out/consumer-of.cjs', ours())).toEqual({ code: 0, stdout: '3\n', stderr: '' })
    })

    it('run a command from the shell', async () => {
      const hi = await project.airlock(['run', '--', 'echo', 'hi'], ours())
      expect(hi).toEqual({ code: 0, stdout: 'hi\n', stderr: '' })
      const json = await project.airlock(['run', '--json', '--', 'sh', '-c', 'exit 5'], ours())
      expect(json.code).toBe(5)
      expect(JSON.parse(json.stdout)).toMatchObject({ exitCode: 5, stdout: '', state: 'exited' })
    })

    it('run code from the shell, and say what it evaluates to', async () => {
      const value = await project.airlock(['python', '--template', 'base', '-c', 'x = 6\nx * 7'], ours())
      expect(value).toEqual({ code: 0, stdout: '42\n', stderr: '' })
      project.write('program.ts', 'const said: string = process.argv[2]\nconsole.log(said)')
      const file = await project.airlock(['run', 'program.ts', 'typed'], ours())
      expect(file).toEqual({ code: 0, stdout: 'typed\n', stderr: '' })
    })

    it('serve the tools for agents', async () => {
      const client = new Client({ name: 'consumer', version: '1' })
      const { directory: cwd } = project
      const args = ['node_modules/.bin/airlock', 'mcp']
      await client.connect(new StdioClientTransport({ command: node, args, cwd, env: ours() }))
      const answer = await client.callTool({
        name: 'run_code',
        arguments: { language: 'bash', template: 'base', code: 'echo packed' },
      })
      await client.close()
      expect(answer.content).toEqual([{ type: 'text', text: 'packed\n' }])
    })

    it('verify an export without asking a server, and find what was changed in it', async () => {
      const exported = await project.airlock(['audit', 'export', 'chain.ndjson'], admins())
      expect(exported.code).toBe(0)
      const verify = ['audit', 'verify', '--key', `${server.home}/public/audit.pub`, '--json']
      const verified = await project.airlock([...verify, 'chain.ndjson'], nobodys)
      expect(JSON.parse(verified.stdout)).toMatchObject({ ok: true, tenant: 'default' })
      expect(verified.code).toBe(0)
      const chain = readFileSync(join(project.directory, 'chain.ndjson'), 'utf8')
      project.write('forged.ndjson', chain.replace('"actor":"system"', '"actor":"nobody"'))
      const forged = await project.airlock([...verify, 'forged.ndjson'], nobodys)
      expect(JSON.parse(forged.stdout)).toMatchObject({ ok: false })
      expect(forged.code).toBe(1)
    })

    it.each(['serve', 'doctor', 'service install', 'uninstall'])(
      'say of "%s" that the server is not among them',
      async (verb) => {
        const said = await project.airlock(verb.split(' '), ours())
        expect(said).toMatchObject({ code: 1, stdout: '' })
        expect(said.stderr).toMatch(/^airlock: the server is not part of this install; [^.\n]*\.\n$/)
      },
    )

    it('reach a server elsewhere by TLS, if they know who vouches for it', requires('openssl'), async () => {
      const certificates = makeCertificates(join(packed.directory, 'certificates'), REMOTE)
      const remote = await startServer({ env: tlsOf(certificates) })
      try {
        const { port } = new URL(remote.url)
        const there = { AIRLOCK_URL: `https://${REMOTE}:${port}`, AIRLOCK_API_KEY: remote.developerKey }
        const trusting = { ...there, NODE_EXTRA_CA_CERTS: certificates.authority }
        const { stdout, ...rest } = await project.runProgram('consumer.js', trusting)
        expect(rest).toEqual({ code: 0, stderr: '' })
        expect(JSON.parse(stdout)).toEqual(SEEN)
        const hi = await project.airlock(['run', '--', 'echo', 'hi'], trusting)
        expect(hi).toEqual({ code: 0, stdout: 'hi\n', stderr: '' })
        const wary = await project.airlock(['whoami'], there)
        expect(wary).toMatchObject({ code: 3, stdout: '' })
        expect(wary.stderr).toContain(`The certificate of https://${REMOTE}:${port} is not trusted.`)
      } finally {
        await remote.stop('SIGINT')
      }
    })
  })
})

const SEEN = {
  role: 'developer',
  ran: ['fed', 3],
  streamed: '1\n2\n3\n',
  cancelled: ['started', 'output', 'enough', 'running', 'SIGKILL'],
  files: ['one two', 7, 7],
  refused: [true, 'file_not_found', false],
  session: ['on\n', 'result', '42', 'failed', 'ZeroDivisionError'],
}

const COMMON_JS = `const { Airlock } = require('@airlock/sdk')
new Airlock().whoami().then(({ role }) => console.log(role))
`

const COMMON_TS = `import sdk = require('@airlock/sdk')
const run = async (): Promise<number | null> => {
  const sandbox = await new sdk.Airlock().sandboxes.create()
  const { exitCode } = await sandbox.run({ shell: 'exit 3' })
  await sandbox.terminate()
  return exitCode
}
run().then((code) => console.log(code))
`

function tlsOf({ certificate, key }: Certificates): Record<string, string> {
  return { AIRLOCK_HOST: '0.0.0.0', AIRLOCK_TLS_CERT: certificate, AIRLOCK_TLS_KEY: key }
}
