import { readFileSync } from 'node:fs'
import type { ProcessName } from '@airlock/contract'

/** The process of a server that has this name, as its supervisor lists them; undefined while it is gone. */
export function pidOf(home: string, name: ProcessName): number | undefined {
  const listed = JSON.parse(readFileSync(`${home}/run/processes.json`, 'utf8')) as readonly { pid: number }[]
  return listed.map(({ pid }) => pid).find((pid) => commandLine(pid).includes(`/dist/${name}/main.js`))
}

/** Empty when it has just died. */
function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}
