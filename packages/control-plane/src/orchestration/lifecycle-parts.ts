import { Activity } from './activity.ts'
import { CommandWatch } from './command-watch.ts'
import { Commands } from './commands.ts'
import type { Context } from './context.ts'
import { Creation } from './create.ts'
import { Files } from './files.ts'
import { Receipts } from './receipts.ts'
import { Reconciler } from './reconcile.ts'
import { Termination } from './terminate.ts'

/** The parts that hold state while sandboxes live. Each depends only on those above it. */
export interface Lifecycle {
  readonly activity: Activity
  readonly receipts: Receipts
  readonly watch: CommandWatch
  readonly termination: Termination
  readonly creation: Creation
  readonly commands: Commands
  readonly files: Files
  readonly reconciler: Reconciler
}

export function createLifecycle(context: Context): Lifecycle {
  const activity = new Activity(context)
  const receipts = new Receipts(context)
  const watch = new CommandWatch(context, receipts)
  const termination = new Termination(context, { activity, watch, receipts })
  const creation = new Creation(context, { termination, activity })
  const commands = new Commands(context, { activity, watch })
  const files = new Files(context, activity)
  const reconciler = new Reconciler(context, { activity, watch, creation, termination })
  return { activity, receipts, watch, termination, creation, commands, files, reconciler }
}
