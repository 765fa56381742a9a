// First of all, so that both threads start at once.
import { control } from './control-thread.ts'
import { startSteps } from './steps.ts'

startSteps(control)
