import type { Tool } from './tool.ts'
import { ARTIFACT_TOOLS } from './tools/artifacts.ts'
import { CODE_TOOLS } from './tools/code.ts'
import { COMMAND_TOOLS } from './tools/commands.ts'
import { FILE_TOOLS } from './tools/files.ts'
import { JOB_TOOLS } from './tools/jobs.ts'
import { SANDBOX_TOOLS } from './tools/sandboxes.ts'

/** Every tool, in the order in which clients show them. */
export const TOOLS: readonly Tool[] = [
  ...CODE_TOOLS,
  ...COMMAND_TOOLS,
  ...FILE_TOOLS,
  ...SANDBOX_TOOLS,
  ...JOB_TOOLS,
  ...ARTIFACT_TOOLS,
]
