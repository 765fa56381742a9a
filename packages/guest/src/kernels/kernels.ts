import type { Kernels } from '../session/driver.ts'
import { BASH } from './bash.ts'
import { NODE } from './node.ts'
import { PYTHON } from './python.ts'

/** Every interpreter that a session may ask for. */
export const KERNELS: Kernels = { python: PYTHON, node: NODE, bash: BASH }
