import type { CommandEnd, StoredCommand } from '../store/commands.ts'
import { updateSessionUse } from '../store/sessions.ts'
import type { StepEnd, StoredStep } from '../store/steps.ts'
import { Activity } from '../sandboxes/activity.ts'
import { AgentEnds } from '../agents/agent-ends.ts'
import { BudgetEnds } from '../spend/budget-ends.ts'
import { commandBook } from '../commands/command-book.ts'
import { CommandWatch } from '../commands/command-watch.ts'
import { Commands } from '../commands/commands.ts'
import { Connections } from '../doors/connections.ts'
import type { Context } from './context.ts'
import { ApprovalAnswers } from '../approvals/approvals.ts'
import { Creation } from '../sandboxes/create.ts'
import { DoorCalls } from '../doors/door-calls.ts'
import { DoorControl } from '../doors/door-control.ts'
import { NetworkConnections } from '../egress/network-connections.ts'
import { Files } from '../sandboxes/files.ts'
import { WorktreeDesk } from '../sandboxes/worktrees.ts'
import { GrantEnds } from '../agents/grant-ends.ts'
import { createJobs } from '../jobs/create-jobs.ts'
import type { ArtifactKeeper } from '../artifacts/artifact-keeper.ts'
import type { Artifacts } from '../artifacts/artifacts.ts'
import { createArtifacts } from '../artifacts/create-artifacts.ts'
import type { JobRunner } from '../jobs/job-runner.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { Catalog } from '../runs/catalog.ts'
import type { Runs } from '../runs/runs.ts'
import { KillHooks } from '../kills/kill-hooks.ts'
import { Killswitch } from '../kills/killswitch.ts'
import { LimitChanges } from '../sandboxes/limits.ts'
import { ModelCalls } from '../models/model-calls.ts'
import { ToolCalls } from '../tools/tool-calls.ts'
import { Pauses } from '../sandboxes/pauses.ts'
import { Receipts } from '../evidence/receipts.ts'
import { Reconciler } from '../sweep/reconcile.ts'
import { Sessions } from '../sessions/sessions.ts'
import { stepBook } from '../sessions/step-book.ts'
import { Steps } from '../sessions/steps.ts'
import { Templates } from '../templates/templates.ts'
import { Termination } from '../sandboxes/terminate.ts'

/** The parts that hold state while sandboxes live. Each depends only on those above it. */
export interface Lifecycle {
  readonly activity: Activity
  readonly sessionActivity: Activity
  readonly receipts: Receipts
  readonly watch: CommandWatch<StoredCommand, CommandEnd>
  readonly stepWatch: CommandWatch<StoredStep, StepEnd>
  readonly connections: Connections
  readonly modelCalls: ModelCalls
  readonly doorCalls: DoorCalls
  readonly termination: Termination
  readonly templates: Templates
  readonly creation: Creation
  readonly commands: Commands
  readonly files: Files
  readonly worktrees: WorktreeDesk
  readonly sessions: Sessions
  readonly steps: Steps
  readonly reconciler: Reconciler
  readonly agentEnds: AgentEnds
  readonly grantEnds: GrantEnds
  readonly budgetEnds: BudgetEnds
  readonly pauses: Pauses
  readonly limitChanges: LimitChanges
  readonly killswitch: Killswitch
  readonly approvals: ApprovalAnswers
  readonly artifacts: Artifacts
  readonly artifactKeeper: ArtifactKeeper
  readonly jobs: Jobs
  readonly jobRunner: JobRunner
  readonly catalog: Catalog
  readonly runs: Runs
}

export function createLifecycle(context: Context): Lifecycle {
  const activity = new Activity(context)
  const sessionActivity = new Activity(context, updateSessionUse)
  const receipts = new Receipts(context)
  const watch = new CommandWatch(context, commandBook(context, receipts))
  const stepWatch = new CommandWatch(context, stepBook(context, receipts))
  const connections = new Connections(context, activity)
  const control = new DoorControl(context, { activity, connections })
  const modelCalls = new ModelCalls(context, receipts)
  const termination = new Termination(context, { activity, sessionActivity, watch, stepWatch, receipts, connections })
  const templates = new Templates(context)
  const creation = new Creation(context, { termination, activity, templates, connections })
  const commands = new Commands(context, { activity, watch })
  const files = new Files(context, activity)
  const sessions = new Sessions(context, { activity, sessionActivity, creation, termination, receipts })
  const steps = new Steps(context, { sessions, stepWatch })
  const pauses = new Pauses(context, activity)
  const limitChanges = new LimitChanges(context, activity)
  const ofArtifacts = createArtifacts(context, activity)
  const reconciler = new Reconciler(context, {
    activity,
    watch,
    stepWatch,
    sessions,
    creation,
    termination,
    pauses,
    limitChanges,
  })
  const hooks = new KillHooks(context.killHooks, context.log)
  const killswitch = new Killswitch(context, { termination, connections, hooks })
  return {
    activity,
    sessionActivity,
    receipts,
    watch,
    stepWatch,
    connections,
    modelCalls,
    doorCalls: doorCallsOf(context, { control, models: modelCalls }),
    termination,
    templates,
    creation,
    commands,
    files,
    worktrees: new WorktreeDesk(context, activity),
    sessions,
    steps,
    reconciler,
    agentEnds: new AgentEnds(context, termination),
    grantEnds: new GrantEnds(context, termination),
    budgetEnds: new BudgetEnds(context, termination),
    pauses,
    limitChanges,
    killswitch,
    approvals: new ApprovalAnswers(context),
    ...ofArtifacts,
    ...createJobs(context, { ...ofArtifacts, creation, commands, files, termination, receipts }),
  }
}

function doorCallsOf(context: Context, of: { readonly control: DoorControl; readonly models: ModelCalls }): DoorCalls {
  const tools = new ToolCalls(context, { admit: async (call) => of.control.admit(call, 'tool') })
  return new DoorCalls(context, { ...of, network: new NetworkConnections(context), tools })
}
