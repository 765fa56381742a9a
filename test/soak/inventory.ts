import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { sleep } from '@airlock/std'
import { hostProcesses, leftovers } from '../support/leftovers.ts'
import { collectGarbage } from './collect-garbage.ts'
import type { ProcessName, SoakServer } from './server.ts'
import { countOpenRows } from './store-rows.ts'

/** How many there are of each kind of thing. */
export type Counts = Readonly<Record<string, number>>

/** What a process of the server has, when it has nothing to do. */
export interface ProcessSample {
  readonly pid: number
  readonly descriptors: number
  readonly sockets: number
  readonly threads: number
  /** Children that ended and were not waited for. */
  readonly zombies: number
  readonly pssKb: number
  readonly rssKb: number
  /** In use after its garbage was collected; null where that was not asked for. */
  readonly heapKb: number | null
}

export interface Idle {
  readonly counts: Counts
  readonly processes: Readonly<Partial<Record<ProcessName, ProcessSample>>>
}

const QUIET_MS = 1_500
const SETTLE_MS = 25_000
const EVERY_MS = 300

/** What is of this home on the host, by kind; a hierarchy of groups is a kind. */
export async function countHost(home: string): Promise<Counts> {
  const found = await leftovers(home)
  const groups = Object.fromEntries(hierarchies().map((point) => [`groups in ${point}`, 0]))
  for (const path of found.flatMap((words) => (words.startsWith('cgroup ') ? [words.slice('cgroup '.length)] : []))) {
    const point = hierarchies().find((one) => path.startsWith(`${one}/`)) ?? 'elsewhere'
    groups[`groups in ${point}`] = (groups[`groups in ${point}`] ?? 0) + 1
  }
  const beginningWith = (word: RegExp) => found.filter((words) => word.test(words)).length
  return {
    'processes of the server': hostProcesses(home).length,
    'processes in sandboxes': beginningWith(/^process /),
    mounts: beginningWith(/^mount /),
    'loop devices': beginningWith(/^loop\d+ /),
    ...groups,
    'uid ranges': beginningWith(/^uid range /),
    'directories of sandboxes': beginningWith(/^directory /),
    'unix sockets': unixSockets(home),
  }
}

/** Waits until descriptors and rows stand still, for connections that nobody uses are kept for some seconds. */
export async function lookWhenIdle(server: SoakServer, garbage: 'keep' | 'collect' = 'keep'): Promise<Idle> {
  let last = ''
  let since = Date.now()
  for (const until = Date.now() + SETTLE_MS; Date.now() < until; await sleep(EVERY_MS)) {
    const now = JSON.stringify([countOpenRows(server.home), descriptorsOf(server), runFiles(server.home)])
    if (now !== last) since = Date.now()
    else if (Date.now() - since > QUIET_MS && !hasOpenRows(server.home)) break
    last = now
  }
  const counts = {
    ...(await countHost(server.home)),
    'files in run': runFiles(server.home),
    ...countOpenRows(server.home),
  }
  const processes: Partial<Record<ProcessName, ProcessSample>> = {}
  for (const [name, pid] of server.pids()) {
    const heapKb = garbage === 'collect' ? (await collectGarbage(pid)) / 1024 : null
    processes[name] = { ...sampleProcess(pid), heapKb }
  }
  return { counts, processes }
}

function hasOpenRows(home: string): boolean {
  return Object.values(countOpenRows(home)).some((count) => count > 0)
}

function descriptorsOf(server: SoakServer): readonly number[] {
  return [...server.pids().values()].map((pid) => entries(`/proc/${pid}/fd`).length)
}

function sampleProcess(pid: number): Omit<ProcessSample, 'heapKb'> {
  const links = entries(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`))
  const children = read(`/proc/${pid}/task/${pid}/children`).trim().split(' ')
  const rollup = read(`/proc/${pid}/smaps_rollup`)
  return {
    pid,
    descriptors: links.length,
    sockets: links.filter((link) => link.startsWith('socket:')).length,
    threads: entries(`/proc/${pid}/task`).length,
    zombies: children.filter((child) => /\) Z /.test(read(`/proc/${child}/stat`))).length,
    pssKb: kilobytes(rollup, 'Pss'),
    rssKb: kilobytes(rollup, 'Rss'),
  }
}

function kilobytes(rollup: string, field: string): number {
  return Number(new RegExp(`^${field}:\\s*(\\d+) kB`, 'm').exec(rollup)?.[1] ?? Number.NaN)
}

/** Where groups may be. */
function hierarchies(): readonly string[] {
  const mounts = read('/proc/self/mountinfo')
    .split('\n')
    .filter((line) => / - cgroup2? /.test(line))
  return mounts.map((line) => line.split(' ')[4] ?? '').toSorted((a, b) => b.length - a.length)
}

/** Bound or connected by a path in this home. */
function unixSockets(home: string): number {
  return read('/proc/net/unix')
    .split('\n')
    .filter((line) => line.includes(` ${home}/`)).length
}

function runFiles(home: string): number {
  return entries(join(home, 'run'), true).length
}

function entries(path: string, recursive = false): readonly string[] {
  try {
    return readdirSync(path, { recursive, encoding: 'utf8' })
  } catch {
    // Gone since it was named.
    return []
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    // Closed since it was listed.
    return ''
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // Gone since it was listed.
    return ''
  }
}
