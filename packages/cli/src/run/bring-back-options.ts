import type { OutOptions } from '../options/code-options.ts'
import { type RunOptions, waitingAirlock } from '../options/command-options.ts'
import type { BringBack } from './bring-back.ts'

/** What the options of a run want of its sandbox once it has ended. */
export function toBringBack(
  options: OutOptions & Pick<RunOptions, 'waitApproval'>,
  sandbox: string,
): Pick<BringBack, 'out' | 'artifacts'> {
  const { artifacts } = waitingAirlock(options)
  const collect = async (patterns: readonly string[]) => artifacts.collect(sandbox, patterns)
  return { out: options.out ?? [], artifacts: { patterns: options.artifact ?? [], collect } }
}
