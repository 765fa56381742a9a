// Types and top-level await: airlock run examples/workers.ts
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

interface Job {
  readonly id: number
  readonly text: string
}

async function work({ id, text }: Job): Promise<string> {
  await sleep(20 * (3 - (id % 3)))
  return `${id} ${createHash('sha256').update(text).digest('hex').slice(0, 8)}`
}

const jobs: readonly Job[] = ['alpha', 'beta', 'gamma', 'delta', 'epsilon'].map((text, id) => ({ id, text }))
const waiting = [...jobs]
const done: string[] = []

async function worker(): Promise<void> {
  for (let job = waiting.shift(); job; job = waiting.shift()) done.push(await work(job))
}

await Promise.all([worker(), worker(), worker()])
console.log(done.toSorted().join('\n'))
console.table(jobs.map(({ id, text }) => ({ id, text, letters: text.length })))
