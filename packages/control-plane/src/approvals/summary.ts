import { redactWhole } from '@airlock/audit'
import { type Operation, question as questionSchema, type Question } from '@airlock/contract'

const SUMMARY = 200

/** The question as people may see it: whole, without what looks like a secret. */
export function shownQuestion(question: Question): Question {
  return questionSchema.parse({ ...question, operation: redactWhole(question.operation) })
}

/** One line of at most 200 characters, of a question that is shown. */
export function summaryOf(question: Question): string {
  const { point, operation, sandbox } = question
  const line = (
    point === 'sandbox.ask' ? `sandbox ${sandbox} asks: ${askOf(operation)}` : `${point}: ${wordsOf(operation)}`
  )
    .replaceAll(/[\s\p{Cc}\p{Bidi_Control}]+/gu, ' ')
    .trim()
    .toWellFormed()
  return line.length > SUMMARY ? `${line.slice(0, SUMMARY - 1)}…`.toWellFormed() : line
}

/** The action first: what follows may be cut. */
function askOf(operation: Operation): string {
  const { action, detail } = operation.kind === 'other' ? operation.payload : {}
  return `${typeof action === 'string' ? action : '-'}${detail === undefined ? '' : ` ${JSON.stringify(detail)}`}`
}

function toolWords({ tool, params, request }: Extract<Operation, { kind: 'tool' }>): string {
  const words = [tool, params && JSON.stringify(params), request && `(${request})`]
  return words.filter(Boolean).join(' ')
}

function fileWords({ action, path, to }: Extract<Operation, { kind: 'file' }>): string {
  return to === undefined ? `${action} ${path}` : `${action} ${path} to ${to}`
}

function wordsOf(operation: Operation): string {
  switch (operation.kind) {
    case 'command':
      return operation.argv.map(quoted).join(' ')
    case 'code':
      return `${operation.runtime}: ${operation.code}`
    case 'file':
      return fileWords(operation)
    case 'mount':
      return `${operation.mode} ${operation.path}`
    case 'sandbox':
      return `a sandbox from ${operation.template}`
    case 'network':
      return `${operation.host}:${operation.port}`
    case 'artifact':
      return `${operation.action} ${operation.name}`
    case 'model':
      return operation.model
    case 'tool':
      return toolWords(operation)
    case 'worktree':
      return worktreeWords(operation)
    case 'other':
      return JSON.stringify({ ...operation.payload, requestId: undefined })
  }
}

/** Kinds of findings with how many of each: the whole list is in the question. */
function worktreeWords({
  format,
  branch,
  source,
  changes,
  findings,
}: Extract<Operation, { kind: 'worktree' }>): string {
  const counts = new Map<string, number>()
  for (const { kind } of findings) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  const said = [...counts].map(([kind, count]) => `${count} ${kind}`).join(', ')
  const to = branch === null ? format : `${format} sandbox/${branch}`
  return `${changes} changed files of ${source} as ${to}; findings: ${said || 'none'}`
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
