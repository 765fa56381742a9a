/** Agent programs and their runs. */
export { graph, graphName, graphSpec, type Graph, type GraphInput, type GraphSpec } from './nouns/runs/graph.ts'
export {
  agentEvent,
  run,
  runEvent,
  runLog,
  runMessage,
  runResult,
  runSummary,
  runUsage,
  submitRunBody,
  type AgentEvent,
  type Run,
  type RunEvent,
  type RunLog,
  type RunMessage,
  type RunResult,
  type RunSummary,
  type RunUsage,
  type SubmitRunBody,
} from './nouns/runs/run.ts'
export {
  openaiChat,
  openaiChatBody,
  openaiModels,
  type OpenaiChat,
  type OpenaiChatBody,
  type OpenaiModels,
  type OpenaiUsage,
} from './nouns/runs/openai.ts'
