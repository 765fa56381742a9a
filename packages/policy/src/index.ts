export { BUILTIN, BUILTIN_VERSION } from './builtin/document.ts'
export { compilePolicy, type CompiledPolicy } from './compile.ts'
export { evaluate } from './evaluate.ts'
export { mergeDecisions } from './merge.ts'
