import { readFileSync } from 'node:fs'
import type { ProcessName } from '@airlock/contract'
import { pidOf } from './pid-of.ts'

/** Peak resident memory of a process of a server, in MiB. */
export function peakMemoryMb(home: string, name: ProcessName): number {
  return fieldOf(home, name, 'VmHWM')
}

/** Its resident memory now, in MiB. */
export function memoryMb(home: string, name: ProcessName): number {
  return fieldOf(home, name, 'VmRSS')
}

function fieldOf(home: string, name: ProcessName, field: string): number {
  const status = readFileSync(`/proc/${pidOf(home, name)}/status`, 'utf8')
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1024
}
