import { DEFAULTS } from '@airlock/contract/defaults'
import { type Artifact, Airlock } from '@airlock/sdk'
import type { Command } from 'commander'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Context } from '../context.ts'
import { listPages } from '../list-pages.ts'
import { getArtifact } from '../run/get-artifact.ts'
import { renderTable, type Row } from '../text/table.ts'
import { durationWithin, formatDuration } from '../text/units.ts'
import { formatBytes } from '@airlock/std'
import { UsageError } from '../usage.ts'
import { withJson, type JsonOption } from '../verb.ts'

const PAGE = 200

export function defineArtifact(artifact: Command, context: Context): void {
  addLs(artifact, context)
  addGet(artifact, context)
  addPut(artifact, context)
  addRm(artifact, context)
  addUrl(artifact, context)
}

interface LsOptions extends JsonOption {
  readonly sandbox?: string
  readonly job?: string
  readonly agent?: string
  readonly name?: string
}

function addLs(artifact: Command, context: Context): void {
  withJson(artifact.command('ls').description('List artifacts, newest first.'))
    .option('--sandbox <id>', 'only those of this sandbox')
    .option('--job <id>', 'only those of this job')
    .option('--agent <agent>', 'only those of this agent')
    .option('--name <name>', 'only those of this name')
    .action(async ({ json, sandbox, job, agent, name }: LsOptions) => {
      const { terminal } = context
      const { artifacts } = new Airlock()
      const asked = { sandbox, job, agent, name, limit: PAGE }
      const found = await listPages(async (cursor) => artifacts.list({ ...asked, cursor }))
      if (json === true) return terminal.printJson(found)
      if (found.length === 0) return terminal.note('There are no artifacts. Keep one with "airlock artifact put".')
      await terminal.print(renderTable(terminal, ['ID', 'SIZE', 'AGE', 'EXPIRES', 'FROM', 'NAME'], found.map(rowOf)))
    })
}

function rowOf({ id, name, size, createdAt, expiresAt, job, sandbox }: Artifact): Row {
  const age = formatDuration(Date.now() - Date.parse(createdAt))
  const left = `in ${formatDuration(Math.max(0, Date.parse(expiresAt) - Date.now()))}`
  return [id, formatBytes(size), age, left, job ?? sandbox ?? 'upload', name]
}

function addGet(artifact: Command, context: Context): void {
  withJson(artifact.command('get').description('Download an artifact, and check its SHA-256.'))
    .argument('<id>', 'the artifact')
    .option('-o, --output <path>', 'where to; - is stdout (default: its name in this directory)')
    .action(async (id: string, { json, output }: JsonOption & { readonly output?: string }) => {
      const { terminal } = context
      const { artifacts } = new Airlock()
      const found = await artifacts.get(id)
      const path = await getArtifact(terminal, { artifacts, found, output })
      if (path === undefined) return
      await (json === true ? terminal.printJson({ ...found, path }) : terminal.print(path))
    })
}

interface PutOptions extends JsonOption {
  readonly name?: string
  readonly agent?: string
  readonly ttl?: number
}

function addPut(artifact: Command, context: Context): void {
  withJson(artifact.command('put').description('Upload a file of this machine as an artifact, and print its id.'))
    .argument('<file>', 'the file')
    .option('--name <name>', 'its name (default: that of the file)')
    .option('--agent <agent>', 'the agent that has it (default: the agent of your key)')
    .option(
      '--ttl <duration>',
      `how long it is kept (default: ${formatDuration(DEFAULTS.artifactTtlMs.default)})`,
      durationWithin(DEFAULTS.artifactTtlMs),
    )
    .action(async (path: string, { json, name, agent, ttl }: PutOptions) => {
      const { size, isFile } = await factsOf(path)
      if (!isFile) throw new UsageError(`${path} is not a file.`, 'Pack a directory first, for example with tar.')
      const options = { agent, ttlMs: ttl, size }
      const made = await new Airlock().artifacts.upload(name ?? basename(path), createReadStream(path), options)
      await (json === true ? context.terminal.printJson(made) : context.terminal.print(made.id))
    })
}

async function factsOf(path: string): Promise<{ readonly size: number; readonly isFile: boolean }> {
  const found = await stat(path)
  return { size: found.size, isFile: found.isFile() }
}

function addRm(artifact: Command, context: Context): void {
  withJson(artifact.command('rm').description('Remove artifacts; their links stop working at once.'))
    .argument('<id...>', 'the artifacts')
    .action(async (ids: readonly string[], { json }: JsonOption) => {
      const { artifacts } = new Airlock()
      for (const id of ids) {
        await artifacts.remove(id)
        if (json !== true) await context.terminal.print(id)
      }
      if (json === true) await context.terminal.printJson(ids.map((id) => ({ id })))
    })
}

function addUrl(artifact: Command, context: Context): void {
  withJson(
    artifact.command('url').description('Print a URL that downloads an artifact without a key until it expires.'),
  )
    .argument('<id>', 'the artifact')
    .option(
      '--expires <duration>',
      `how long it works (default: ${formatDuration(DEFAULTS.artifactLinkMs.default)})`,
      durationWithin(DEFAULTS.artifactLinkMs),
    )
    .action(async (id: string, { json, expires }: JsonOption & { readonly expires?: number }) => {
      const link = await new Airlock().artifacts.link(id, { expiresInMs: expires })
      await (json === true ? context.terminal.printJson(link) : context.terminal.print(link.url))
    })
}
